CREATE TABLE `device_revocations` (
	`user_id` text NOT NULL,
	`device_id` text NOT NULL,
	`reason` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`user_id`, `device_id`),
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `gateways` (
	`user_id` text PRIMARY KEY NOT NULL,
	`gateway_id` text NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE UNIQUE INDEX `gateways_gateway` ON `gateways` (`gateway_id`);--> statement-breakpoint
ALTER TABLE `sessions` ADD `shared` integer DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX `users_created` ON `users` (`created_at`,`id`);--> statement-breakpoint
-- Users of before get theirs; an account that is being deleted needs none.
INSERT INTO `gateways` (`user_id`, `gateway_id`, `created_at`)
SELECT `id`, lower(hex(randomblob(16))), `created_at` FROM `users` WHERE `deleted_at` IS NULL;

CREATE TABLE `receipts` (
	`user_id` text NOT NULL,
	`device_id` text NOT NULL,
	`request_id` text NOT NULL,
	`session_id` text NOT NULL,
	`epoch` integer NOT NULL,
	`receipt` text NOT NULL,
	`code` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`user_id`, `device_id`, `request_id`, `session_id`, `epoch`),
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
ALTER TABLE `sessions` ADD `workspace` text;--> statement-breakpoint
ALTER TABLE `sessions` ADD `derived_title` text;--> statement-breakpoint
ALTER TABLE `sessions` ADD `message_count` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `sessions` ADD `pinned_at` integer;--> statement-breakpoint
ALTER TABLE `sessions` ADD `settled_at` integer;--> statement-breakpoint
CREATE INDEX `sessions_user_created` ON `sessions` (`user_id`,`created_at`);--> statement-breakpoint
ALTER TABLE `users` ADD `settings` text;--> statement-breakpoint
ALTER TABLE `users` ADD `default_policy` text;--> statement-breakpoint
-- What was copied so far; from now on the object says it.
UPDATE `sessions` SET `message_count` = (SELECT count(*) FROM `messages` WHERE `messages`.`session_id` = `sessions`.`id`);

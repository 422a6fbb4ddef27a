/** The release that `GET /status` reports; a test holds it equal to package.json. */
export const ROUTER_VERSION = '0.1.0'

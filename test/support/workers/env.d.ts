/** What the test configuration binds beside what a deployment has. */
declare namespace Cloudflare {
  interface Env {
    DB: D1Database
    SESSION: DurableObjectNamespace
    GATEWAY: DurableObjectNamespace
    LOCAL_DEV: string
    RATE_LIMIT_BURST: string
    TEST_MIGRATIONS: import('cloudflare:test').D1Migration[]
  }
  interface GlobalProps {
    mainModule: { default: ExportedHandler }
  }
}

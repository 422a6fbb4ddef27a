import type { Context } from 'hono'
import { ROUTER_VERSION } from '../protocol/version.ts'

/** For people who open the router's address in a browser (D53). */
export const frontPage = (c: Context): Response | Promise<Response> =>
  c.html(`<!doctype html><meta charset="utf-8"><title>Switchyard</title>
<h1>Switchyard</h1><p>A router for LLM coding sessions, release ${ROUTER_VERSION}. It speaks JSON under
<a href="/api/v1/openapi.json">/api/v1</a>; use the <code>switchyard</code> command or a client of that API.</p>`)

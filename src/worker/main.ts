import { Session } from '../session/session.ts'
import { app } from './app.ts'

export { Session }
export default app

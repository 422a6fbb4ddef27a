import { gatewaySuites } from '../support/remote-device/suites.ts'

gatewaySuites({ hibernating: false })

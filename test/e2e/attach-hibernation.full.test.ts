import { attachedE2e } from '../support/remote-device/attached/served-suites.ts'

attachedE2e({ hibernating: true })

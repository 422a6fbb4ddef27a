/** A preview is what the run will be: a share of the requests of the long tier. */

import { testAgreement } from '../../support/node/preview-agreement-tests.ts'

testAgreement(160)

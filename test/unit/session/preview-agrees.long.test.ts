/** A preview is what the run will be. */

import { testAgreement } from '../../support/node/preview-agreement-tests.ts'

testAgreement(2_000)

/** What may go where, whatever fails: the whole table. */

import { describePrivacyTable } from '../../support/node/privacy-table-tests.ts'

describePrivacyTable(1)

/** What may go where, whatever fails: a share of the table. The long tier runs the whole of it. */

import { describePrivacyTable } from '../../support/node/privacy-table-tests.ts'

describePrivacyTable(22)

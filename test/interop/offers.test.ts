/** Some combinations of offers.ts. */
import { testOffers } from './offers.js'

await testOffers('some')

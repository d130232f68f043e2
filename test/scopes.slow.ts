/** No other spelling of a tool reaches a server: between the clients and servers that scopes.test.ts leaves out. */
import t from 'tap'
import { testScopes } from './support/scope-pairs.js'

testScopes(t, 'rest')

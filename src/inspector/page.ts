/** The page as text. The build puts the bundled page here; without a build there is none. */
import type { PageFiles } from './routes.js'

export const PAGE: PageFiles | undefined = undefined

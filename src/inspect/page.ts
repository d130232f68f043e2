/** The page as text. The build puts the bundled page here; without a build there is none. */
import type { Page } from './routes.js'

export const PAGE: Page | undefined = undefined

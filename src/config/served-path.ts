/** What no path has that the bridge serves: clients resolve dots before they send a path, and requests are routed by decoded paths. */
export const NEVER_ASKED = /%|\/\.{1,2}(?:\/|$)/
export const NO_ENCODING = 'has to be without "%" and without the parts "." and ".."'

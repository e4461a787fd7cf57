/** The version of this program; a test holds it to package.json. */
export const programVersion = '0.2.0'

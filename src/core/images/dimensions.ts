/** The size of a picture in pixels. */
export type Dimensions = { width: number; height: number }

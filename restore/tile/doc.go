// Package tile divides an image into overlapping tiles and fuses values that were computed for the tiles.
//
// Tiles form a grid. Along an axis the tiles have equal lengths and are spread evenly, so that all neighbours share nearly equally many
// pixels. Each pixel is a weighted mean of the tiles that contain it. The weights of a pixel sum to one. Within the pixels
// that two neighbours share, a weight is 0 in the outer quarter, where a network sees the border of the tile,
// and then rises as sin². A pixel that only one tile contains has the weight 1 at the border of the image, too.
//
// A function of the neighbourhood of each pixel, such as a network of convolutions, therefore has the same values in tiles as on the
// whole image, if its radius is at most a quarter of the shared pixels.
package tile

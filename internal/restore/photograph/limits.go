package photograph

// This file is the table of the numbers by which photographs and their restorations are judged: value, unit, reason, and for each group the command that
// measures it. A test of the repository refuses such a number in another file of this package or of package job.

// Masks from files. Shares are those of pixels, levels those between black at 0 and white at 1. Drawn masks as people make them: go test -v -run
// TestMasks ./internal/restore/photograph.
//
// The bounds of masks, with levels from 0, black, to 1.
const (
	// black and white bound the levels of soft edges. In a file compressed with loss edges overshoot.
	black      = 0.1
	white      = 0.97
	whiteLossy = 0.9
	// photographShare is the share of pixels, neither black nor white, from which a mask is a photograph. Strokes with soft edges have less.
	photographShare = 1. / 8
	// colourful is the difference of colours, and colourShare the share of pixels with it, from which a mask is no black-and-white picture.
	colourful   = 0.3
	colourShare = 0.001
	// clearShare is the share of transparent pixels from which they are drawn on purpose.
	clearShare = 0.001
	// fewLevels is the largest level, in 255ths, of labels that look black.
	fewLevels = 16
	// mostLost is the share of lost pixels, and widestLost the side of the widest hole in parts of the shorter side, with leastHole pixels, from which a mask
	// is probably inverted.
	mostLost   = 0.5
	widestLost = 1. / 4
	leastHole  = 16
)

// Kernels from files. Distances are in pixels: go test -v -run TestKernels ./internal/restore/photograph.
//
// offCentre is the distance of a kernel's light from its centre in pixels from which it is said, offCentreShare the least in parts of its side: drawn paths are centred
// by their turns, not by their light.
const (
	offCentre      = 1.5
	offCentreShare = 0.125
)

// White noise. Levels are in units of y, where black is −1 and white 1: go test -v -run TestPhotographs ./internal/restore/photograph,
// docs/data/noise-level.csv.
const (
	// side is the side of a patch in pixels.
	side = 4
	// mostPatches bounds the patches of a picture: in a larger one their positions have equal distances.
	mostPatches = 1 << 16
	// perEntry is the least number of patches per entry of a patch.
	perEntry = 8
	// clippedShare is the largest share of clipped entries in a patch: their noise is cut off. Patches without any would be
	// selected by their noise.
	clippedShare = 0.05
	// rounds is the largest number of selections, settled the relative change of the variance at which they end.
	rounds  = 10
	settled = 1e-4
	// digits is the number of significant digits of an estimate: far fewer than those of the arithmetic, so that it is the same on all
	// processors.
	digits = 3
)

// Noise in compressed files: go test -v -run TestCompressed ./internal/restore/photograph.
const (
	// block is the side of a block of JPEG.
	block = 8
	// coarse is the largest sum of the two frequencies of content; bandWidth sums above it make a band.
	coarse    = 2
	bandWidth = 2
	bands     = 3
	// clippedOfBlock is the largest share of clipped pixels in a block, fewestBlocks the least number of blocks, quietest the share of the blocks with less
	// energy than the one whose energy is taken for noise.
	clippedOfBlock = 0.1
	fewestBlocks   = 16
	quietest       = 0.1
	// digitsCompressed is the number of significant digits.
	digitsCompressed = 2
)

// Noise that neighbouring pixels share: go test -v -run TestCorrelated ./internal/restore/photograph.
const (
	// leastCorrelated is the least level of correlated noise, leastFall the least fall of the level from middle to fine frequencies: of white noise it was 1.5 at most, of correlated noise
	// 2.2 at least.
	leastCorrelated = 0.025
	leastFall       = 1.8
	// steepest is the least level of the middle frequencies over that of the coarse ones: of noise that was smoothed by a Gaussian of a pixel it was 0.45, of smooth content less.
	steepest = 0.35
	// mostBright is the largest level of the brightness over that of the colours: without noise it was 2.5 at least.
	mostBright = 1.8
)

// Noise that grows with the brightness: go test -v -run TestShot ./internal/restore/photograph.
const (
	// shades is the number of parts of a picture by brightness, fewestShades the least number for a line.
	shades       = 8
	fewestShades = 4
	// leastGrowth is the least variance of the brightest part over that of the darkest one, by the line, and largestError the largest median error of the line in parts of the
	// variance: else the noise is taken for equal everywhere.
	leastGrowth  = 1.8
	largestError = 0.3
	// digitsShot is the number of significant digits of a level.
	digitsShot = 2
)

// Kernels that are turned: go test -v -run TestTurned ./internal/restore/photograph.
const (
	// mostTested is the largest side of the part of a picture on which kernels are compared.
	mostTested = 512
	// leastNoise is the least deviation of the noise of the comparison.
	leastNoise = 5e-3
	// turnedParts is the number of parts of the picture along an axis, in each of which orientations are compared, hardlyTurned the mean difference that counts as an error.
	turnedParts  = 4
	hardlyTurned = 3e-3
	// hardlyOdd is the share of a kernel's energy that is not the same after a turn, up to which it has no orientation.
	hardlyOdd = 2.5e-3
	// flat is the difference of neighbouring pixels, in parts of the mean one, below which a picture is flat.
	flat = 0.3
)

// LeastLong is the value of [Long] from which a kernel is too long: go test -v -run TestWrongKernel ./restore/picture.
const LeastLong = 2

// Widths of blurs: go test -v -run TestEstimateWidth ./internal/restore/photograph.
const (
	// slope and slopes are mean and deviation of the power of 1/f with which the power spectra of sharp photographs fall, scatter the deviation of the logarithm of a spectrum from a power.
	slope, slopes, scatter = 2.4, 0.3, 0.2
	// perOctave is the number of annuli of a spectrum in an octave, fewestAnnuli the least number from which a width is estimated, leastSide the least side of a picture.
	perOctave, fewestAnnuli, leastSide = 6, 9, 48
	// narrowest is the least width that is tried, widestShare the largest in parts of the shorter side.
	narrowest, widestShare = 0.25, 1. / 20
	// coarseStep and fineStep are the factors between widths.
	coarseStep, fineStep = 1.15, 1.03
	// lowest is the least frequency that counts, in periods of the shorter side.
	lowest = 3.
	// leastPower is that of rounding errors: rounding to 16 bits has 8e-11.
	leastPower = 1e-12
	// leastError is the least relative uncertainty of a width.
	leastError = 0.2
)

// Doubts of restorations: DDIFF_GRID=500 go test -v -run TestNeverWorse ./restore/picture.
const (
	// Roughest and Roughening bound the energy of a band of details over that of the next coarser band, by itself and in parts of the measurement's: pictures
	// have less energy in finer bands, and noise that a restoration invents or raises has more. Where an earlier result was doubted, strict bounds hold for the coarsest band and the
	// finest, in which lies most of a noise that a deblurring magnifies: of 500 results of the grid, seven are above, none better than its picture.
	Roughest         = 0.8
	Roughening       = 2.5
	StrictRoughening = 1.45
	FinestRoughest   = 0.6
	FinestRoughening = 1.9
	// DetailBands is the number of bands, each of half the resolution of the one before.
	DetailBands = 4
	// LeastRaise is the least factor by which a doubted noise level is raised, Lowering is the share of the residual's deviation to which one is lowered, SmallestLowered bounds the
	// residual of a lowered one, which was taken from a residual with details, as SmallestMisfit that of a stated one.
	LeastRaise      = 2
	Lowering        = 0.7
	SmallestLowered = 0.4
	// BlindSigma is a noise level from which a raised one must be that of the residual.
	BlindSigma = 0.25
	// LeastTaken bounds the level of noise in y − A(x) of a lossy file, in parts of the one that was estimated in y: less is texture that was taken for noise.
	// Of ten photographs without noise, of quality 85 to 100, it was 0.515 at most where their residual was small, of simulated cameras at dusk and night 0.67 to 0.79.
	LeastTaken = 0.52
	// LargestSigma is a noise level that leaves hardly anything of a picture.
	LargestSigma = 0.5
)

// Widths of stated blurs, for doubts.
const (
	// TooWide and TooWideHigh bound the stated width of a Gaussian blur over the one that the picture has, and over the largest one that it may have.
	TooWide     = 1.4
	TooWideHigh = 1.1
	// WebPQuality stands for the quality of lossy files that do not state one.
	WebPQuality = 75
)

// Warnings of restorations, which docs/restore.md describes: DDIFF_GRID=500 go test -v -run TestNeverWorse ./restore/picture.
const (
	// LargestMisfit and SmallestMisfit bound the mean square residual over the variance of the noise. A restoration fits a part of the noise, so that
	// the ratio may be well below 1.
	LargestMisfit  = 1.5
	SmallestMisfit = 0.2
	// Spreads is the number of standard deviations of the mean square of pure noise by which the bounds are widened.
	Spreads = 5
	// FlatShare is the contrast of a flat restoration in parts of that of its measurement without noise, FlatContrast that of one
	// whose measurement is no picture. The contrast is the standard deviation of the pixels about the mean of their channel.
	FlatShare    = 0.2
	FlatContrast = 0.02
	// LargestExcess is the largest stated noise level of a picture over the estimated one. Denoising with 2.5 times the noise loses details.
	// LargestLack is the largest estimated one over the stated one in denoise; elsewhere estimates are too high more often.
	LargestExcess = 2
	LargestLack   = 1.5
	// SmallSigma is a noise level of 2.5 of 255 levels, which is usual for a picture with hardly any noise. Where sigma is not larger, a restoration that fits
	// all of the noise is no worse for it. Denoising, which takes away nothing but noise, loses up to 13 dB with it there, so that its limit is SmallDenoise.
	SmallSigma   = 0.02
	SmallDenoise = 0.005
	// HardlyAny is an estimated noise level that changes hardly a pixel of 8 bits in denoise.
	HardlyAny = 0.01
	// LeastCoarseSide is the shorter side from which the flattest parts of a picture are taken for coarse noise, MostCoarse the largest such noise. Ten photographs without noise had
	// 0.13 at most at 128×128 and 0.27 at 64×64, pages of text 0.5 to 1.2; film grain of 0.08, the coarsest that was tried, counts as 0.3.
	LeastCoarseSide = 128
	MostCoarse      = 0.4
	// Weakest is the largest singular value, in noise levels and at most Strongest, of the coefficients in which a blurred measurement is noise: fine
	// details of photographs have an amplitude below 0.1. LargestSignal bounds their mean square over the variance of the noise, and FewestWeak their number.
	Weakest       = 2.5
	Strongest     = 0.25
	LargestSignal = 1.1
	FewestWeak    = 100
	// LargestClipped is the share of black and white samples, RarerClipped that of the rarer ones: photographs with noise had at most 0.34 of both, pages
	// of text, some of which are better than their restorations, at least 0.5 (docs/data/restore-clipped.csv).
	LargestClipped = 0.4
	RarerClipped   = 0.01
	// GreenShare bounds the mean square difference of the two green samples, in means over blocks of GreenBlock×GreenBlock squares, over that of the red and the
	// blue one: it is at most 1.2 in the pictures of examples, pages in grey, and at most 0.16 in photographs with colours.
	GreenBlock = 4
	GreenShare = 4
	// LargestLost is the share of lost pixels from which a mask may be inverted.
	LargestLost = 0.5
	// WidestFilled is the width of a hole, in parts of the picture's shorter side, above which a smooth fill is closer to the truth on more photographs than
	// not: with a quarter on 9 of 16, with half on 12 of 16 (docs/data/smooth-fill.csv).
	WidestFilled = 1. / 3
	// FewSteps is the share of the preset's steps below which there are few.
	FewSteps = 0.5
)

// Dead and hot pixels: go test -v -run TestDeadPixels ./restore/picture.
const (
	// Farthest is the distance of an isolated sample from all but one of its neighbours, in deviations of a sample from the median of its neighbours,
	// LeastFar a lower bound, and FarthestRange the distance in ranges of the neighbours without their extremes: the peak of a point that a Gaussian of 1.5 pixels blurred has 1.25.
	Farthest      = 5
	LeastFar      = 0.15
	FarthestRange = 1.4
	// MostFine is the largest part of details above FineFrequency, in cycles per pixel, in a picture that has no isolated sample but dead ones. Of 20 blurred photographs, none had one with a disk
	// of 3 pixels, which leaves 0.059, and a Gaussian of 1.25 pixels (0.021); 8 had with a Gaussian of one pixel (0.085), 11 and 19 with straight motions of 9 and 3 pixels (1).
	FineFrequency = 0.35
	MostFine      = 0.06
	// MostOutliers is the share of samples above which they belong to the picture.
	MostOutliers = 0.1
	// StuckLevel is the least absolute value of a sample that is black or white, as those of dead and hot pixels. Of the isolated samples of sharp pictures few are, in the
	// mosaic of one of ten photographs 0.12 to 0.25: StuckShare is the least share, FewestStuck the least number. AloneShare is their least share in the samples that are black, or white: it
	// was 0.05 at most in overexposed photographs by day, 0.1 at least with a hundredth of dead and hot pixels.
	StuckLevel  = 0.99
	StuckShare  = 0.25
	FewestStuck = 8
	AloneShare  = 0.08
	// FewestWhole and WholeShare are the least number and share of pixels that are so in all channels.
	// Where WholeEnds of the isolated samples that are black or white belong to such pixels, the other ones are no dead samples.
	FewestWhole = 3
	WholeShare  = 2e-4
	WholeEnds   = 0.5
	// FewestSure and SureShare are those of samples of a mosaic that are far from their neighbours both of their colour and of all: photographs had 2 at most.
	FewestSure = 6
	SureShare  = 1e-3
	// MedianNoise is the deviation of a sample from the median of its neighbours, in deviations of noise.
	MedianNoise = 1.1
	// NormalMedian is the median of the absolute value of a normal deviate.
	NormalMedian = 0.6745
	// SampleDistance is the distance of samples from which the deviation is estimated.
	SampleDistance = 7
)

// FillShare is the share of lost pixels from which a restoration does more to fill them: docs/data/smooth-fill.csv.
const FillShare = 5e-4

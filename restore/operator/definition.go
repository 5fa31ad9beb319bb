package operator

import (
	"ddiff/restore/onnx"
	"ddiff/restore/parameter"
)

// Definition declares the operator of one task.
type Definition struct {
	// Name is the task's name in campaign files and results, which the list of the program gives to a built-in task. It is part of identities.
	Name string
	// Label is the name for people, Doc one line on the measurement without a full stop.
	Label, Doc string
	// Parameters are the numbers that a campaign may set.
	Parameters parameter.List
	// Build makes the expression for images of one shape, both sides even and at least 8. p holds every parameter, each in
	// its range; added ones may be missing at their default 0. Errors wrap [ErrShape] or [ErrParam].
	Build func(s Shape, p map[string]float64) (Expression, error)
	// Grey: A maps images of three channels to measurements of one.
	Grey bool
	// Linear: A is linear.
	Linear bool
	// Sensitive: rounding errors of the network grow from step to step until they change the answer, so that the precision auto keeps the
	// network in float32.
	Sensitive bool
	// SVD decomposes the operator for images of one shape; errors wrap [ErrShape]. Nil: see [ErrNoSVD].
	SVD func(s Shape, p map[string]float64) (*SVD, error)
	// Dense is the number of elements of the expression's constant matrices along an axis, in multiples of the square of
	// its length.
	Dense float64
	// Long: images with a side above 1024 pixels have an expression without such matrices.
	Long bool
	// ImageSide returns the side of the image whose measurement has the given side. Nil: the sides are equal.
	ImageSide func(side int, p map[string]float64) int
	// Input names the file that may replace the operator's draw: "mask" or "kernel". Empty: the operator has no draw.
	Input string
	// Required: a row must give the file Input; the draw serves checks of the operator only.
	Required bool
	// Given is the operator of items that have the file Input, whose parameters are its own. This operator then has no draw. Nil: the
	// file replaces the draw.
	Given *Definition
	given bool // it is the Given of another definition
	// NotPicture: y is not a picture of the scene, so that no picture file can be its measurement.
	NotPicture bool
	// Coloured: the noise of a measurement is not white, so that its level cannot be estimated, and an image whose residual lies far below it
	// is sound.
	Coloured bool
	// Grid: A is tied to the grid of the measurement's pixels. Those of a picture are then taken as they lie in the file, without the
	// orientation in EXIF data, which turns the restored picture.
	Grid bool
	// Stated reads the parameters that the file of a measurement states. Errors wrap [ErrParam]. Nil: files state no parameters.
	Stated func(file []byte) (Stated, error)
	// Identity: A is x, so that noise is all that a restoration takes away.
	Identity bool
	// Blur: A blurs in linear values, so that a measurement has no texture, and errors of its file are magnified.
	Blur bool
	// Width names the parameter that is the standard deviation of a Gaussian blur, as [Shape.Length] has it, which a picture tells. Empty: there is none.
	Width string
	// Mosaic: y has one sample per pixel behind a Bayer filter, whose red samples are at the parameters red_row and red_column.
	Mosaic bool
	// Local: a part of a measurement is that of a part of the image, so that it serves as a preview.
	Local bool
	// Ambiguous: images that are turned, or otherwise far from each other, have equal measurements, so that the mean of several runs says nothing.
	Ambiguous bool
	// Guess says what of a restoration y does not tell and no measured prior knows, one line. Empty: nothing.
	Guess string
	// Doubt says why a picture cannot be a measurement with these parameters, by the mean square of y − A(x) of its restoration; "" where it can. It stands for the
	// comparison with the noise, which a Coloured task does not have. Nil: nothing is known.
	Doubt func(p map[string]float64, residual float64) string
	// Own is the file of an operator that is not built in, see [Load]. Nil for a built one.
	Own *File
}

// Stated has the parameters that the file of a measurement states.
type Stated struct {
	// Params are the parameters, nil for a file that states none. Missing are those that must then be given.
	Params  map[string]float64
	Missing []string
	// Inexact says how the file differs from A with these parameters, one line. Empty: it does not.
	Inexact string
}

// IsGiven reports whether d is [Definition.Given] of its task.
func (d Definition) IsGiven() bool { return d.given }

// Unestimated returns the reason why the noise level of measurements cannot be estimated, or "".
func (d Definition) Unestimated() string {
	switch {
	case d.NotPicture:
		return "its measurement is no picture"
	case d.Coloured:
		return "the noise of its measurement is not white"
	}
	return ""
}

// Photons reports whether a measurement can have the noise of photons: it is a picture, from black at −1 to white at 1.
func (d Definition) Photons() bool { return d.Own == nil && !d.NotPicture }

// Weighable reports whether the pixels of a measurement can have weights in the data term: it is a picture, without a mask of its own or noise that A makes.
func (d Definition) Weighable() bool {
	return d.Own == nil && !d.NotPicture && !d.Coloured && d.Input != "mask"
}

// Uses reports whether items can have a file of this name, "mask" or "kernel": the operator's, or, for a linear A, the mask of the pixels of y.
func (d Definition) Uses(file string) bool {
	return file == d.Input || file == "mask" && d.Linear && d.Weighable()
}

// KeepsObserved reports whether restorations keep the observed pixels where nothing else is said: which those are is all that a measurement states.
func (d Definition) KeepsObserved() bool { return d.Required && d.Input == "mask" }

// Expression is y = A(x) for images of one shape.
type Expression struct {
	// Measurement is the shape [channels, rows, columns] of y for one item. Nil: the image's.
	Measurement []int
	// Forward builds A(x) for a batch x [N, C, H, W]. v is the batch of encoded draws of Variable, [N, Variable.Dims...].
	// Operations on x need a gradient rule, see [onnx.Graph.Gradient].
	Forward func(g *onnx.Graph, x, v onnx.Value) onnx.Value
	// Adjoint builds Aᵀ·w of a linear A, for weights w in the shape of y. Nil: reverse mode over Forward.
	Adjoint func(g *onnx.Graph, w, v onnx.Value) onnx.Value
	// Smooth builds a differentiable approximation of A whose gradient is that of Forward, where A is constant almost everywhere. Nil: the
	// gradient is that of A.
	Smooth func(g *onnx.Graph, x, v onnx.Value) onnx.Value
	// Proximal builds argmin_x D(x) + weight·d(x, v)²/2 for images v and measurements y, where D is −log p(y | x) of an error that A itself makes, such
	// as rounding, with a scale of its own, and d is a distance of images. weight has the shape [1]. Nil: A makes none, and its noise is that of the campaign.
	Proximal func(g *onnx.Graph, v, y, weight onnx.Value) onnx.Value
	// Recover builds Jᵀ·w for weights w in the shape of y, and passes w also at saturated entries of A(x) whose residual
	// r = y − A(x) leads back into the range by more than limit. Nil: A does not saturate. J is diagonal, so that this is J·w too.
	Recover func(g *onnx.Graph, x, w, r onnx.Value, limit float32) onnx.Value
	// Range has the entries of y without noise, apart from overshoot. Nil: [−1, 1]; unknown for a file's operator.
	Range *Range
	// Spectrum is the number of values of the spectrum of one channel, if Forward computes one channel's after another. 0: it computes none, or multiplies with constant
	// matrices, see [Definition.Dense].
	Spectrum int
	// Copies is the number of copies of the image in memory that Forward and its gradient need more than a pointwise operator.
	Copies int
	// Inverse builds x of a measurement y that is not saturated, of an A without a decomposition. Nil: none is known.
	Inverse func(g *onnx.Graph, y onnx.Value) onnx.Value
	// Short has coordinates of y in which steps compute faster, for an expression without Adjoint, Proximal, Recover and Variable. Nil: steps compute with y itself.
	Short *Coordinates
	// Variable is the input that differs from item to item. Nil: there is none.
	Variable *Variable
	// Baseline returns an image of x's shape from y, which a restoration has to beat. Nil: y itself if it has x's shape,
	// else no image.
	Baseline func(y []float32) []float32
	// Picture returns values in [−1, 1], in y's shape, that show y to people. Nil: y itself.
	Picture func(y []float32) []float32

	file *fileExpression // replaces Forward
}

// Coordinates are those of a measurement y and of all A(x) by a map U that changes no distance between them, and so not the result of a step either. U may depend
// on y: it need not keep the distance of two measurements.
type Coordinates struct {
	// Dims is the shape of U·y for one item.
	Dims []int
	// Of returns U·y.
	Of func(y []float32) []float32
	// Forward builds U·A(x), as [Expression.Forward] does A(x).
	Forward func(g *onnx.Graph, x, v onnx.Value) onnx.Value
}

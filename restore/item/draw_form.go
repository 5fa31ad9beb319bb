package item

import "fmt"

// The values of a [DrawForm].
const (
	MaskKept          = "kept"
	MaskLost          = "lost"
	KernelCorrelation = "correlation"
	KernelPSF         = "psf"
)

// DrawForm says how the files of masks and kernels are meant.
type DrawForm struct {
	// MaskShows is what a bright or opaque pixel of a mask is: MaskLost, or kept, the default. A mask of an item that states it is not doubted.
	MaskShows string `json:"mask_shows,omitempty"`
	// KernelForm is KernelPSF for the image of a point of light, with which A convolves, or correlation, the default.
	KernelForm string `json:"kernel_form,omitempty"`
}

// CheckMask returns an error for another word than those of MaskShows.
func (f DrawForm) CheckMask() error { return oneOf(f.MaskShows, MaskLost, MaskKept) }

// CheckKernel returns an error for another word than those of KernelForm.
func (f DrawForm) CheckKernel() error { return oneOf(f.KernelForm, KernelPSF, KernelCorrelation) }

func oneOf(word, a, b string) error {
	if word == "" || word == a || word == b {
		return nil
	}
	return fmt.Errorf("%q is neither %s nor %s", word, a, b)
}

// identity leaves out what changes nothing.
func (f DrawForm) identity(mask, kernel bool) DrawForm {
	if !mask || f.MaskShows != MaskLost {
		f.MaskShows = ""
	}
	if !kernel || f.KernelForm != KernelPSF {
		f.KernelForm = ""
	}
	return f
}

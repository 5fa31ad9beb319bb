package item

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Sigma is the noise level of a measurement: the standard deviation in units of y, 0..1, or SigmaAuto.
type Sigma float64

// SigmaAuto is the word auto: the level is estimated from each stored measurement.
const SigmaAuto Sigma = -math.MaxFloat64

// sigmaWord is SigmaAuto as people write it.
const sigmaWord = "auto"

// String returns the number, or auto.
func (s Sigma) String() string {
	if s == SigmaAuto {
		return sigmaWord
	}
	return strconv.FormatFloat(float64(s), 'g', -1, 64)
}

// MarshalJSON writes the number, or the text "auto".
func (s Sigma) MarshalJSON() ([]byte, error) {
	if s == SigmaAuto {
		return json.Marshal(sigmaWord)
	}
	return json.Marshal(float64(s))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Sigma) UnmarshalJSON(data []byte) error {
	if string(data) == `"`+sigmaWord+`"` {
		*s = SigmaAuto
		return nil
	}
	var x float64
	err := json.Unmarshal(data, &x)
	*s = Sigma(x)
	return err
}

// Check returns an error for a level out of range.
func (s Sigma) Check() error {
	if x := float64(s); s != SigmaAuto && !(x >= 0 && x <= 1) {
		return fmt.Errorf("%v is out of range, want 0 to 1 (in units of y)", x)
	}
	return nil
}

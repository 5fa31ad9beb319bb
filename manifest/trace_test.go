package manifest

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
)

// The order of the curves stays in the JSON form.
func TestTraceJSON(t *testing.T) {
	t.Parallel()
	trace := Trace{Timestep: []int{999, 500}, Curves: []Curve{{"residual", []float64{1, 0.5}}, {"gap", []float64{-2, 1e-9}}}}
	data, err := json.Marshal(trace)
	const want = `{"timestep":[999,500],"residual":[1,0.5],"gap":[-2,1e-9]}`
	if err != nil || string(data) != want {
		t.Fatalf("%s, error %v; want %s", data, err, want)
	}
	back := Trace{Curves: []Curve{{"of an earlier item", nil}}}
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, trace) {
		t.Errorf("read back %+v, error %v", back, err)
	}
	if got := back.Curve("gap"); !reflect.DeepEqual(got, []float64{-2, 1e-9}) || back.Curve("loss") != nil {
		t.Errorf("curve gap is %v, curve loss is %v", got, back.Curve("loss"))
	}
}

func TestTraceErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[1]`:                                 "trace is not a JSON object",
		`{"timestep":["one"]}`:                "curve timestep: ",
		`{"timestep":[1],"residual":["one"]}`: "curve residual: ",
	} {
		var trace Trace
		if err := json.Unmarshal([]byte(text), &trace); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	// json.Unmarshal refuses cut text itself.
	for _, text := range []string{"", `{"timestep":[1],`, `{"timestep":[1]`, `{"gap":[1] 3}`} {
		var trace Trace
		if err := trace.UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%q: read as %+v", text, trace)
		}
	}
	_, err := json.Marshal(Trace{Curves: []Curve{{"gap", []float64{math.NaN()}}}})
	if err == nil || !strings.Contains(err.Error(), "curve gap: ") {
		t.Errorf("NaN: error %v", err)
	}
}

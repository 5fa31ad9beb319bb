package randomnet

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// WriteSafetensors writes the weights under their published names in the safetensors format: header length, header in
// JSON, tensor data.
func (n *Network) WriteSafetensors(w io.Writer) error {
	type entry struct {
		DType   string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}
	header, at := map[string]entry{}, 0
	for _, t := range n.weights {
		header[t.name] = entry{"F32", t.dims, [2]int{at, at + 4*len(t.data)}}
		at += 4 * len(t.data)
	}
	text, err := json.Marshal(header)
	if err != nil {
		return fmt.Errorf("write weights: %w", err)
	}
	for len(text)%8 != 0 {
		text = append(text, ' ')
	}
	if _, err := w.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)); err != nil {
		return fmt.Errorf("write weights: %w", err)
	}
	for _, t := range n.weights {
		if err := binary.Write(w, binary.LittleEndian, t.data); err != nil {
			return fmt.Errorf("write weight %s: %w", t.name, err)
		}
	}
	return nil
}

package prior

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"ddiff/internal/regular"
	"ddiff/restore/onnx"
)

// WriteBundle writes a bundle into the folder dir, which it creates: a file with the graph of each part by role, in an
// operator set, and the card, whose Files it sets.
func WriteBundle(dir string, card BundleCard, opset int, parts map[string]func(g *onnx.Graph) error) error {
	if err := regular.MakeFolder(dir); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	card.Files = map[string]BundleFile{}
	for role, build := range parts {
		g := onnx.NewGraph(opset)
		if err := build(g); err != nil {
			return fmt.Errorf("write bundle: %s: %w", role, err)
		}
		data, err := g.Marshal(role)
		if err != nil {
			return err
		}
		file := BundleFile{File: role + ".onnx", SHA256: regular.SHA256(data)}
		if err := regular.Replace(filepath.Join(dir, file.File), data, 0o644); err != nil {
			return fmt.Errorf("write bundle: %w", err)
		}
		card.Files[role] = file
	}
	text, err := json.MarshalIndent(card, "", " ")
	if err != nil {
		return err
	}
	if err := regular.Replace(filepath.Join(dir, CardName), append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	return nil
}

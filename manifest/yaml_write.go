package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// YAML returns the campaign as a campaign file. comment is its first lines, without marks.
func (s *Spec) YAML(comment string) ([]byte, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write campaign: %w", err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil { // JSON is YAML
		return nil, fmt.Errorf("write campaign: %w", err)
	}
	root := doc.Content[0]
	plain(root)
	root.Style = 0
	if tasks := entry(root, "tasks"); tasks != nil {
		tasks.Style = 0
	}
	root.HeadComment = comment
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("write campaign: %w", err)
	}
	return out.Bytes(), enc.Close()
}

// plain removes the quotes of texts that need none.
func plain(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		n.Style = 0
	}
	for _, c := range n.Content {
		plain(c)
	}
}

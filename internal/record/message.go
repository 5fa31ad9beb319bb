package record

import (
	"encoding/json"
	"fmt"

	"ddiff/restore/item"
)

// EncodeItem returns the payload of a queue message: the JSON of an item with the field "schema".
//
// Versions of ddiff may run one campaign together. A field that changes the result of an item is part of its identity,
// so that a worker that does not know the field finds another identity ([item.Item.CheckID]) and refuses the item. All other
// fields are optional: a worker ignores those that it does not know.
func EncodeItem(encoded []byte) []byte {
	return append(fmt.Appendf(nil, `{"schema":%d,`, item.SchemaVersion), encoded[1:]...)
}

// Decode decodes the payload of a queue message. It returns item.ErrNewer for a higher schema.
func Decode[T item.Item | Preflight](data []byte) (payload T, err error) {
	if err = item.CheckSchema(data); err == nil {
		err = json.Unmarshal(data, &payload)
	}
	return payload, err
}

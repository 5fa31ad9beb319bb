package tune

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"ddiff/manifest"
)

// Folder is the prefix of the keys of the tuning records in an output: tuning/ID.json.
const Folder = "tuning/"

// recordSchema is the version of a [Record].
const recordSchema = 1

// Record states on which images which settings were compared and chosen. It has no figures of the test side.
type Record struct {
	Schema int `json:"schema"`
	// Objective is the name of the figure that decided, higher is better after its sign. Select is the rule that combined the
	// runs of a measurement.
	Objective string             `json:"objective"`
	Select    manifest.Selection `json:"select"`
	Split     manifest.Split     `json:"split"`
	Folds     []RecordFold       `json:"folds"`
	// Evaluations is the number of network evaluations of all races. An item that an earlier campaign solved counts.
	Evaluations int `json:"evaluations"`
}

// RecordFold has the images and the races of one fold.
type RecordFold struct {
	Fold
	Races []RecordRace `json:"races"`
}

// RecordRace is the race of one method on one problem.
type RecordRace struct {
	Task string `json:"task"`
	// Params are the complete parameters of the operator in one text, such as "factor=4", Size is the working size and fit.
	Params string  `json:"params,omitempty"`
	Sigma  float64 `json:"sigma"`
	// Photons is the number of photons of a white pixel, 0 without their noise.
	Photons float64 `json:"photons,omitempty"`
	Size    string  `json:"size"`
	Method  string  `json:"method"`
	// Prior is the SHA-256 of the prior's file.
	Prior string `json:"prior"`
	// Chosen are the settings of the winner, empty if no setting restored an image.
	Chosen string `json:"chosen,omitempty"`
	Rounds int    `json:"rounds"`
	// Images are the tuning images of the problem in the order of the race, Unusable those on which every setting failed.
	Images      []string       `json:"images"`
	Unusable    []string       `json:"unusable,omitempty"`
	Evaluations int            `json:"evaluations"`
	Cells       []RecordedCell `json:"cells"`
}

// RecordedCell is one setting of a race. Its key is the settings in one text.
type RecordedCell struct {
	Standing
	// Solver has the complete settings.
	Solver json.RawMessage `json:"solver"`
	// Evaluations is the number of network evaluations that were spent on the setting.
	Evaluations int `json:"evaluations"`
}

// Encode returns the stored form of a record and its key, which follows from the content.
func (r Record) Encode() (key string, data []byte, err error) {
	r.Schema = recordSchema
	if data, err = json.MarshalIndent(r, "", "  "); err != nil {
		return "", nil, fmt.Errorf("encode %w: %w", ErrRecord, err)
	}
	data = append(data, '\n')
	sum := sha256.Sum256(data)
	return Folder + hex.EncodeToString(sum[:8]) + ".json", data, nil
}

// DecodeRecord reads the stored form. The error wraps [ErrRecord].
func DecodeRecord(data []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	if r.Schema < 1 || r.Schema > recordSchema {
		return r, fmt.Errorf("%w: it has version %d, this program reads %d", ErrRecord, r.Schema, recordSchema)
	}
	return r, nil
}

// TunedOn calls yield for each image on which settings were chosen, with the task, the method and the settings. With
// folds, an image does not count if another fold chose the same settings for the same problem without it. A race of one
// setting chooses nothing.
func (r Record) TunedOn(yield func(task, method, settings, sha256 string)) {
	for _, fold := range r.Folds {
		for _, race := range fold.Races {
			if race.Chosen == "" || len(race.Cells) < 2 {
				continue
			}
			for _, img := range fold.Tune {
				if !r.choseWithout(race, img) {
					yield(race.Task, race.Method, race.Chosen, img.SHA256)
				}
			}
		}
	}
}

// choseWithout reports whether a fold without the image chose the same settings for the same problem.
func (r Record) choseWithout(race RecordRace, img Image) bool {
	return slices.ContainsFunc(r.Folds, func(f RecordFold) bool {
		return !slices.ContainsFunc(f.Tune, func(i Image) bool { return i.SHA256 == img.SHA256 }) && slices.ContainsFunc(f.Races, func(other RecordRace) bool {
			return other.Task == race.Task && other.Params == race.Params && other.Sigma == race.Sigma && other.Photons == race.Photons && other.Size == race.Size &&
				other.Method == race.Method && other.Prior == race.Prior && other.Chosen == race.Chosen
		})
	})
}

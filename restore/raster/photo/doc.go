// Package photo writes restored pictures as files that replace photographs: in the format of the source or another one, with its transparency, its range
// of values, and what it says beside its pixels.
package photo

// Package modelfile reads, checks and rewrites ONNX models.
//
// ReadModel parses a file and refuses one whose values are in other files; ReadFile embeds them. A rewrite returns another
// Model and leaves its source as it is: Half computes in mixed precision, FuseGroupNorm rewrites normalisations, Blocked changes the
// layout of images, Convert the operator set, and Split divides a model at an output. Errors wrap ErrModel.
//
// A new rewriting of nodes is one file here, as groupnorm.go; Prior.rewrite (restore/prior/prior.go) calls it and raises rewritten, so
// that verify.go there compares the rewritten network with the file. A rewrite sees the nodes of one file. Package onnx composes models in graphs; onnxruntime runs them.
package modelfile

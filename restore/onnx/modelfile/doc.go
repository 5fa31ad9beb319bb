// Package modelfile reads, checks and rewrites ONNX models.
//
// ReadModel parses a file and refuses one whose values are in other files; ReadFile embeds them. A rewrite returns another
// Model and leaves its source as it is: Half computes in mixed precision, FuseGroupNorm and FuseGroupNormByChannel fuse normalisations,
// Convert the operator set, and Split divides a model at an output. Errors wrap ErrModel.
//
// A new rewriting of nodes (a fusion) is one file here, as groupnorm.go. Prior.rewrite (restore/prior/prior.go), through which the score network
// alone passes, calls it for both of its forms and raises rewritten, so that verify.go there compares the rewritten network of a file with the
// file. It comes after FuseGroupNorm, which begins both, and keeps precise and normalised (model.go) of its source. A rewrite sees the nodes of one file. Package onnx composes models in graphs; onnxruntime runs them.
package modelfile

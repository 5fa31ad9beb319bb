// Package modelfile reads, checks and rewrites ONNX models.
//
// ReadModel parses a file and refuses one whose values are in other files; ReadFile embeds them. A rewrite returns another
// Model and leaves its source as it is: Half computes in mixed precision, FuseGroupNorm fuses normalisations for
// OpenVINO, ChannelsLast and WithTables make forms for GPUs, and Convert changes the operator set. Package internal/restore/prior applies them, and checks
// the forms (choice.go). Errors wrap ErrModel.
//
// A new rewriting of nodes (a fusion) is one file here, as groupnorm.go, that FuseGroupNorm calls, as it calls mix: Prior.Verify
// (internal/restore/prior/verify.go) compares the result on OpenVINO with the file. A rewrite sees the nodes of one file. Package onnx composes models in
// graphs; onnxruntime runs them.
package modelfile

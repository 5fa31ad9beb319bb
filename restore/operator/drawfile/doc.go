// Package drawfile reads masks and kernels as people draw and store them: pictures with soft edges, transparent layers or exchanged colours, arrays with
// an even side, kernels in a frame. It repairs what has one sensible meaning and says so, and doubts what has not.
// It also draws kernels, and finds the blur that a picture has.
package drawfile

package operator

// VerifyWithin is Verify with another limit.
var VerifyWithin = (*File).verifyWithin

// AddNoise turns A(x) into a measurement, in place.
var AddNoise = Noise.add

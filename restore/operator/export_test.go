package operator

// VerifyWithin is Verify with another limit.
var VerifyWithin = (*File).verifyWithin

// Package embedded runs campaigns in this process: a coordinator, a JetStream queue and one worker, with their progress on
// standard error.
//
// [WithCampaign] opens what one campaign needs and [WithMachine] what successive campaigns share; both close everything after
// use. The output is locked meanwhile. Rerunning an interrupted campaign resumes it.
package embedded

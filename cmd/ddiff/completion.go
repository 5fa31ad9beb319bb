package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ddiff/coordinator"
	"ddiff/coordinator/shard"
	"ddiff/coordinator/tune"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/solver"
)

// completionDeadline bounds how long a completion waits for the board: a person waits for the shell.
const completionDeadline = time.Second

// completions returns the values that a flag may have, by the flag's name.
func completions(c shard.Catalogue) map[string]func() []string {
	fixed := func(words ...string) func() []string { return func() []string { return words } }
	tasks := func() []string {
		var all []string
		for _, t := range c.Operators.Tasks() {
			all = append(all, t.Name+"\t"+t.Doc)
		}
		return all
	}
	methods := func() []string {
		var all []string
		for _, m := range c.Methods.Infos() {
			all = append(all, m.Name+"\t"+m.About)
		}
		return all
	}
	return map[string]func() []string{
		"task":       tasks,
		"method":     methods,
		"preset":     c.Methods.Presets,
		"fit":        fixed(string(manifest.FitCenterCrop), string(manifest.FitResize), string(manifest.FitPad)),
		"tile":       fixed(manifest.TileAuto, manifest.TileOff),
		"select":     func() []string { return strings.Split(words(manifest.Selections()), ", ") },
		"objective":  func() []string { return strings.Split(words(tune.Objectives()), ", ") },
		"device":     onnxruntime.Providers,
		"form":       func() []string { return strings.Split(words(solver.Forms()), ", ") },
		"precision":  func() []string { return strings.Split(words(onnxruntime.Precisions()), ", ") },
		"log-level":  fixed("debug", "info", "warn", "error", "off"),
		"log-format": fixed("text", "json"),
		"priority":   func() []string { return strings.Split(words(manifest.Priorities()), ", ") },
	}
}

// completeFlags completes the values of a command's flags.
func completeFlags(cmd *cobra.Command, c shard.Catalogue) {
	for name, values := range completions(c) {
		flag := cmd.LocalFlags().Lookup(name)
		if flag == nil {
			continue
		}
		list := strings.HasSuffix(flag.Value.Type(), "Slice")
		// The flag exists and has no other completion, so there is no error.
		_ = cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			before := ""
			if list {
				before = typed[:strings.LastIndex(typed, ",")+1]
			}
			all := values()
			if name == "precision" && flag.DefValue == "" { // of a campaign
				all = strings.Split(words(manifest.Precisions()), ", ")
				if cmd.Name() != "replay" {
					all = append(all, string(manifest.PrecisionAuto))
				}
			}
			if name == "task" && (cmd.Name() == "run" || cmd.Name() == "tune") {
				all = append(all, allTasks+"\tall tasks without a file of their own")
			}
			return complete(all, before, typed), cobra.ShellCompDirectiveNoFileComp
		})
	}
}

// completePriors completes --prior with the folders, the networks and the archives that the shell finds.
func completePriors(cmd *cobra.Command) {
	if cmd.LocalFlags().Lookup("prior") == nil {
		return
	}
	// The flag exists and has no other completion, so there is no error.
	_ = cmd.RegisterFlagCompletionFunc("prior", cobra.FixedCompletions([]string{"onnx", "tar"}, cobra.ShellCompDirectiveFilterFileExt))
}

// complete returns the completions of typed. Before is the list of earlier values in typed; its values are left out.
func complete(values []string, before, typed string) []string {
	var out []string
	for _, v := range values {
		name, _, _ := strings.Cut(v, "\t")
		if strings.HasPrefix(before+name, typed) && !slices.Contains(strings.Split(before, ","), name) {
			out = append(out, before+v)
		}
	}
	return out
}

// completeCampaigns completes the first argument of a command with the ids on the cluster's board. Without a board, or
// with a slow one, there is nothing to complete.
func (f *natsFlags) completeCampaigns(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionDeadline)
	defer cancel()
	found := make(chan []string, 1)
	go func() {
		var ids []string
		// Without a board there are no ids; the shell shows no errors.
		_ = f.withBoard(ctx, func(b *queue.Board) error {
			all, _, err := coordinator.Campaigns(ctx, b)
			for _, s := range all {
				ids = append(ids, s.Campaign.ID+"\t"+string(s.Campaign.Phase))
			}
			return err
		})
		found <- ids
	}()
	select {
	case ids := <-found:
		return ids, cobra.ShellCompDirectiveNoFileComp
	case <-ctx.Done(): // a connection attempt may outlive ctx
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

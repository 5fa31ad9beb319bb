package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ddiff/internal/cli"
	"ddiff/internal/cli/campaign"
	"ddiff/internal/record"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/tune"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/restore/parameter"
)

// completions returns the values that a flag may have, by the flag's name.
func completions(c manifest.Catalogue) map[string]func() []string {
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
		"prefer":     fixed("detail"),
		"preset":     c.Methods.Presets,
		"fit":        func() []string { return strings.Split(cli.Words(item.Fits()), ", ") },
		"tile":       fixed(manifest.TileAuto, manifest.TileOff),
		"select":     func() []string { return strings.Split(cli.Words(manifest.Selections()), ", ") },
		"objective":  func() []string { return strings.Split(cli.Words(tune.Objectives()), ", ") },
		"device":     onnxruntime.Providers,
		"precision":  fixed("float32", "bfloat16", "float16"),
		"log-level":  fixed("debug", "info", "warn", "error", "off"),
		"log-format": fixed("text", "json"),
		"priority":   func() []string { return strings.Split(cli.Words(record.Priorities()), ", ") },
	}
}

// completeFlags completes the values of the flags of a command and of those below it.
func completeFlags(cmd *cobra.Command, c manifest.Catalogue) {
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
				all = strings.Split(cli.Words(parameter.Precisions()), ", ")
				if cmd.Name() != "submit" {
					all = append(all, string(manifest.PrecisionAuto))
				}
			}
			if name == "task" && (cmd.Name() == "run" || cmd.Name() == "tune") {
				all = append(all, campaign.AllTasks+"\tall tasks without a file of their own")
			}
			return complete(all, before, typed), cobra.ShellCompDirectiveNoFileComp
		})
	}
	completePriors(cmd)
	for _, sub := range cmd.Commands() {
		completeFlags(sub, c)
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

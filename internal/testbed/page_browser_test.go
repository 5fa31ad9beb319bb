package testbed

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser drives a headless Chromium and counts what the last line of `make page-test` states.
type browser struct {
	t    *testing.T
	ctx  context.Context
	axe  string // source of axe-core
	dir  string // for screenshots
	base string // address of the page

	pages, steps, violations int

	mu      sync.Mutex
	console []string
	outage  bool // refused connections are no errors
}

// openBrowser starts a browser. The test is skipped without one.
func openBrowser(t *testing.T, root string) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium on PATH: the page is not tested; apt-get install chromium")
	}
	b := &browser{t: t, axe: axe(t, root), dir: t.TempDir()}
	if dir := os.Getenv("DDIFF_SCREENSHOTS"); dir != "" {
		b.dir = dir
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(1280, 900))
	allocator, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	b.ctx = ctx
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *cdplog.EventEntryAdded:
			if e.Entry.Level == cdplog.LevelError {
				b.complain(e.Entry.Text + " " + e.Entry.URL)
			}
		case *runtime.EventExceptionThrown:
			b.complain(e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
				b.complain(fmt.Sprintf("console.%s %s", e.Type, e.Args[0].Value))
			}
		}
	})
	return b
}

// axe returns the source of the accessibility checks, which npm installs with the packages of the page.
func axe(t *testing.T, root string) string {
	t.Helper()
	dir := filepath.Join(root, "coordinator", "serve", "page")
	source := filepath.Join(dir, "node_modules", "axe-core", "axe.min.js")
	if _, err := os.Stat(source); err != nil {
		cmd := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("install axe-core: %v\n%s", err, out)
		}
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (b *browser) complain(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.outage || !strings.Contains(text, "net::ERR_") {
		b.console = append(b.console, text)
	}
}

// expectOutage permits refused connections from now on.
func (b *browser) expectOutage() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outage = true
}

// step runs actions, and ends the test with a screenshot if they fail.
func (b *browser) step(name string, actions ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		var text string
		failed := filepath.Join(b.t.ArtifactDir(), "failed.png")
		_ = chromedp.Run(b.ctx, chromedp.Evaluate(`location.hash + "\n" + document.body.innerText`, &text), save(failed)) // the failure is reported in any case
		b.t.Fatalf("%s: %v\nconsole: %q\nscreenshot: %s\n%.3000s", name, err, b.console, failed, text)
	}
	b.steps++
}

// open opens a screen.
func (b *browser) open(fragment string) chromedp.Action { return chromedp.Navigate(b.base + fragment) }

// until waits until an expression of the page is true. The page's policy forbids the polling of chromedp itself.
func until(expression string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		for {
			var ok bool
			if err := chromedp.Evaluate("!!("+expression+")", &ok).Do(ctx); err == nil && ok {
				return nil
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("wait until %s: %w", expression, ctx.Err())
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
}

// has waits for a text on the page.
func has(text string) chromedp.Action {
	return until(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// press clicks the button or link with a text.
func press(text string) chromedp.Action {
	return chromedp.Click(fmt.Sprintf(`//*[self::button or self::a or self::summary][normalize-space()=%q]`, text), chromedp.BySearch, chromedp.NodeVisible)
}

// window sets the window and the colour scheme.
func window(width, height int64, scheme string) chromedp.Action {
	return chromedp.Tasks{
		chromedp.EmulateViewport(width, height),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
	}
}

// audit checks the accessibility of the screen, and that nothing is wider than the window.
func (b *browser) audit(screen string) {
	b.t.Helper()
	var found []string
	var wide bool
	b.step("audit "+screen,
		chromedp.Evaluate(b.axe+"; 0", nil),
		chromedp.Evaluate(`axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] }).then((r) =>
			r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html.slice(0, 200)).join(" ")))`, &found, awaited),
		chromedp.Evaluate(`document.documentElement.scrollWidth > innerWidth`, &wide))
	b.pages++
	b.violations += len(found)
	for _, text := range found {
		b.t.Errorf("%s: %s", screen, text)
	}
	if wide {
		b.t.Errorf("%s is wider than the window", screen)
	}
}

func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// shot stores a screenshot of the window.
func (b *browser) shot(name string) {
	b.t.Helper()
	b.step("screenshot "+name, until(`[...document.images].every((i) => i.complete)`), save(filepath.Join(b.dir, name+".png")))
}

func save(path string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		data, err := page.CaptureScreenshot().WithFormat(page.CaptureScreenshotFormatPng).WithOptimizeForSpeed(false).Do(ctx)
		if err != nil {
			return err
		}
		return os.WriteFile(path, data, 0o644)
	})
}

// scriptBytes returns the size of the page's script as it travels.
func (b *browser) scriptBytes() (size int) {
	b.t.Helper()
	b.step("read the size of the script", chromedp.Evaluate(`performance.getEntriesByName(new URL("app.js", location).href)[0]?.encodedBodySize ?? 0`, &size))
	return size
}

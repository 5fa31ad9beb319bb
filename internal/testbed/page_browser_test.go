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

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// browser drives a headless Chromium and counts what the last line of `make page-test` states.
type browser struct {
	t    *testing.T
	ctx  context.Context
	axe  string // source of axe-core, of the first audit
	dir  string // for screenshots
	base string // address of the page

	pages, steps, violations int

	mu      sync.Mutex
	console []string
	allowed string // a part of messages that are no errors
}

// openBrowser starts a browser. The test is skipped without one.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium on PATH: the page is not tested; apt-get install chromium")
	}
	b := &browser{t: t, dir: os.Getenv("DDIFF_SCREENSHOTS")}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)
	allocator, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	b.ctx = ctx
	must(t, chromedp.Do(ctx))
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return // the browser has ended
			}
			if m.Type == chromedp.ConsoleError || m.Type == chromedp.ConsoleWarning || m.Type == chromedp.ConsoleException {
				b.complain(m.Text + " " + m.URL)
			}
		}
	}()
	return b
}

// axe returns the source of the accessibility checks, which npm installs with the packages of the page.
func axe(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(root, "internal", "coordinator", "serve", "page")
	source := filepath.Join(dir, "node_modules", "axe-core", "axe.min.js")
	if _, err := os.Stat(source); err != nil {
		cmd := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("install axe-core: %v\n%s", err, out)
		}
	}
	text, err := os.ReadFile(source)
	must(t, err)
	return string(text)
}

// framed is the browser's warning about each report in its frame, which needs its origin for its pictures. It cannot escape: no other script than that
// of ddiff runs in it.
const framed = "An iframe which has both allow-scripts and allow-same-origin"

func (b *browser) complain(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !strings.HasPrefix(text, framed) && (b.allowed == "" || !strings.Contains(text, b.allowed)) {
		b.console = append(b.console, text)
	}
}

// expect permits messages of the console with a part, which is that of the browser for a refused connection or a refused request.
func (b *browser) expect(part string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed = part
}

// action is a step of a person, or a wait for what it brings about.
type action = chromedp.Action[chromedp.Void]

// stepLimit is the deadline of a step; it may wait for a campaign.
const stepLimit = 4 * time.Minute

// step runs actions, and ends the test with a screenshot if they fail.
func (b *browser) step(name string, actions ...action) {
	b.t.Helper()
	take(b, name, func(ctx context.Context) (chromedp.Void, error) { return chromedp.Void{}, chromedp.Do(ctx, actions...) })
}

// take is a step with a result.
func take[T any](b *browser, name string, do func(ctx context.Context) (T, error)) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, stepLimit)
	defer cancel()
	out, err := do(ctx)
	if err != nil {
		failed := filepath.Join(b.t.ArtifactDir(), "failed.png")
		_ = chromedp.Do(b.ctx, save(failed)) // the failure is reported in any case
		text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.hash + "\n" + document.body.innerText`))
		b.t.Fatalf("%s: %v\nconsole: %q\nscreenshot: %s\n%.3000s", name, err, b.console, failed, text)
	}
	b.steps++
	return out
}

// evaluate returns the value of an expression, also of a promise.
func evaluate[T any](b *browser, name, expression string) T {
	b.t.Helper()
	return take(b, name, func(ctx context.Context) (T, error) {
		return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	})
}

// script runs statements in the page.
func script(statements string) action {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := chromedp.Evaluate[int]("(() => { "+statements+"; })(), 0")(ctx, t)
		return err
	})
}

// open opens a screen.
func (b *browser) open(fragment string) action { return chromedp.Navigate(b.base + fragment) }

// until waits until an expression of the page is true. The page's policy forbids the polling of chromedp itself.
func until(expression string) action {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		for {
			if ok, err := chromedp.Evaluate[bool]("!!("+expression+")")(ctx, t); err == nil && ok {
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
func has(text string) action { return until(fmt.Sprintf("document.body.innerText.includes(%q)", text)) }

// press clicks the button or link with a text.
func press(text string) action {
	return chromedp.Click(fmt.Sprintf(`//*[self::button or self::a or self::summary][normalize-space()=%q]`, text), chromedp.NodeVisible)
}

// window sets the size and the colour scheme.
func window(width, height int64, scheme string) action {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, height)); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})
}

// audit checks the accessibility of the screen, the orders of a screen reader and of the keyboard, and that nothing is wider than the window.
func (b *browser) audit(screen string) {
	b.t.Helper()
	if b.axe == "" {
		b.axe = axe(b.t)
	}
	b.step("load axe-core", script(b.axe))
	found := evaluate[[]string](b, "audit "+screen, `axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] }).then((r) =>
		r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html.slice(0, 200)).join(" ")))`)
	found = append(found, evaluate[[]string](b, "read "+screen, readingOrder)...)
	found = append(found, b.tabs(screen)...)
	b.pages++
	b.violations += len(found)
	for _, text := range found {
		b.t.Errorf("%s: %s", screen, text)
	}
	if evaluate[bool](b, "measure "+screen, `document.documentElement.scrollWidth > innerWidth`) {
		b.t.Errorf("%s is wider than the window", screen)
	}
}

// readingOrder lists what stands above what a screen reader, which follows the document, has read before it. A column to the right of another one may
// begin above the other's end.
const readingOrder = `(() => {
	const place = document.querySelector("dialog[open]") ?? document.body, out = [];
	let before;
	for (const e of place.querySelectorAll("h1,h2,h3,p,a,button,input,select,textarea,summary,table,figure,pre,[role=img]")) {
		const r = e.getBoundingClientRect();
		if (!e.checkVisibility({ visibilityProperty: true, opacityProperty: true }) || r.width * r.height < 2 || getComputedStyle(e).position === "fixed") continue;
		if (before && r.bottom <= before.r.top && r.left < before.r.right)
			out.push("read after what is below it: " + before.e.outerHTML.slice(0, 100) + " then " + e.outerHTML.slice(0, 100));
		before = { e, r };
	}
	return out;
})()`

// tabs walks through the screen with the Tab key. It lists what the key leaves out or takes in another order than the document has, and where the
// focus cannot be seen; a script's focus of the first has no sign.
func (b *browser) tabs(screen string) (found []string) {
	b.t.Helper()
	const stops = `const place = document.querySelector("dialog[open]") ?? document.body;
		const stops = [...place.querySelectorAll("a[href],button,input,select,textarea,summary,iframe,[tabindex='0']")].filter((e) =>
			e.tabIndex >= 0 && !e.disabled && !e.closest("[inert]") && e.checkVisibility({ visibilityProperty: true }) &&
			(e.type !== "radio" || e.checked || !document.querySelector("[name=" + e.name + "]:checked"))); `
	b.step("go to the start of "+screen, script(stops+`window.reached = []; stops[0].focus();`))
	count := evaluate[int](b, "count the stops of "+screen, "(() => {"+stops+"return stops.length; })()")
	for range min(count, tabLimit) {
		found = append(found, evaluate[[]string](b, "look at the focus", `(() => {`+stops+`
			const e = document.activeElement, at = stops.indexOf(e), s = getComputedStyle(e), last = window.reached.at(-1) ?? -1;
			window.reached.push(at);
			if (at !== last + 1) return ["Tab reaches stop " + at + " after " + last + ": " + e.outerHTML.slice(0, 120)];
			return at > 0 && s.outlineStyle === "none" && s.boxShadow === "none" && e.tagName !== "IFRAME" ? ["focus without a sign: " + e.outerHTML.slice(0, 120)] : [];
		})()`)...)
		b.step("press Tab", chromedp.KeyEvent(kb.Tab))
	}
	b.steps -= 2 * min(count, tabLimit) // a person presses the key without a thought
	return found
}

// tabLimit is the number of stops after which tabs ends: lists of items have hundreds.
const tabLimit = 40

// shot stores a screenshot of the window.
func (b *browser) shot(name string) {
	b.t.Helper()
	b.step("screenshot "+name, until(`[...document.images].every((i) => i.complete)`), save(filepath.Join(b.dir, name+".png")))
}

func save(path string) action {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		data, err := chromedp.CaptureScreenshot()(ctx, t)
		if err != nil {
			return err
		}
		return os.WriteFile(path, data, 0o644)
	})
}

// scriptBytes returns the size of the page's script as it travels: the query passes by the browser's cache, which knows no size.
func (b *browser) scriptBytes() int {
	b.t.Helper()
	return evaluate[int](b, "read the size of the script", `performance.clearResourceTimings(), fetch("app.js?size").then((a) => a.arrayBuffer()).then(() =>
		performance.getEntriesByType("resource").find((e) => e.name.endsWith("app.js?size")).encodedBodySize)`)
}

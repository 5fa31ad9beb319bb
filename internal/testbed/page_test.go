package testbed

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// pageCampaign has six photographs and two tasks.
const pageCampaign = `name: photographs
dataset: {path: '%s', size: 64, fit: resize}
tasks: [super_resolution, inpaint_box]
steps: %d
attempts: 1
`

// TestPage uses the page in a browser, as people do, over a cluster of real processes: it submits a campaign, watches it, pauses it, resumes it
// with the token of an administrator, retries a failed item, opens images, compares two campaigns, looks at hostile names, and goes on with another
// coordinator when one dies. A stranger submits a campaign of two methods, compares them and downloads the ten worst pictures. It prints
//
//	pages=N steps=N console_errors=N violations=N script_kb=N stranger_s=N
//
// and stores screenshots in the directory DDIFF_SCREENSHOTS.
func TestPage(t *testing.T) {
	onlyBy(t, "make page-test", "DDIFF_SCREENSHOTS")
	b := openBrowser(t)
	ctx, cancel := context.WithTimeout(t.Context(), 14*time.Minute)
	defer cancel()
	dir := t.TempDir()
	c, err := Start(ctx, Options{Dir: dir, Program: program})
	t.Cleanup(c.Stop)
	must(t, err)
	if _, err = prepare(ctx, c, dir); err != nil { // uploads the photographs
		t.Fatal(err)
	}
	local(b, c)
	var listen []string
	for range 2 {
		address, err := FreeAddress(ctx)
		must(t, err)
		listen = append(listen, address)
		_, err = c.AddCoordinator(ctx, "--listen", address, "--require-tokens")
		must(t, err)
	}
	withTokens, err := FreeAddress(ctx)
	must(t, err)
	_, err = c.AddCoordinator(ctx, "--listen", withTokens, "--require-tokens")
	must(t, err)
	front := forward(t, listen[0])
	b.base = "http://" + front.address + "/"

	b.expect("status of 401")
	b.step("open the empty list", window(1280, 900, "light"), b.open(""), asAdmin(c, b), has("No campaigns yet"))
	b.expect("")
	b.step("open an address that is no text", b.open("#/%zz"), has("ddiff"), b.open("#/campaigns"), has("No campaigns yet"))
	b.audit("empty list")
	id := submitted(b, c)
	damage := filepath.Join(c.S3.Root, Dataset, "coffee.png")
	photograph, err := os.ReadFile(damage)
	must(t, err)
	b.step("wait for the items", has("of 12 items"))
	must(t, os.Remove(damage))
	_, err = c.AddWorker(ctx, "--batch", "1")
	must(t, err)
	followed(b, c, "http://"+withTokens+"/", id)
	must(t, os.WriteFile(damage, photograph, 0o644))
	retried(b)
	viewed(b, id)

	file := filepath.Join(dir, "other.yaml")
	must(t, os.WriteFile(file, fmt.Appendf(nil, pageCampaign, c.Images(), 30), 0o644))
	_, err = c.Output(ctx, "submit", file, "--watch")
	must(t, err)
	compared(b)
	looked(b, id)
	size := b.scriptBytes()
	hostile(b, c)
	took := stranger(b, c)
	solved(b, c)

	b.expect("net::ERR_")
	c.Coordinators[0].Kill()
	b.step("notice the loss", has("The coordinator does not answer"))
	front.to.Store(&listen[1])
	b.step("go on with the other coordinator", has("coordinator-2 answers now"), until(`document.querySelectorAll(".campaigns tbody tr").length === 5`))

	if len(b.console) > 0 {
		t.Errorf("the console of the browser shows %q", b.console)
	}
	if kb := (size + 999) / 1000; kb == 0 || kb > 100 {
		t.Errorf("the script has %d kB, want at most 100", kb)
	}
	t.Logf("pages=%d steps=%d console_errors=%d violations=%d script_kb=%d stranger_s=%.0f", b.pages, b.steps, len(b.console), b.violations, (size+999)/1000, took.Seconds())
}

// submitted submits a campaign from the form, and returns its id.
func submitted(b *browser, c *Cluster) string {
	text := fmt.Sprintf(pageCampaign, c.Images(), 40)
	b.step("open the form", press("Submit a campaign"), chromedp.WaitVisible("#spec"), has("Choose a task"), until(`document.querySelector("#spec").value === ""`))
	b.step("choose a template",
		until(`document.querySelectorAll("[name=template] option").length > 10`),
		script(`const select = document.querySelector("[name=template]"); select.value = "gaussian_deblur"; select.dispatchEvent(new Event("change", { bubbles: true }))`),
		until(`/- name: gaussian_deblur\n    params:\n      size: 61 # .+ pixels.*\n      std: 3 #/.test(document.querySelector("#spec").value)`), has("Line 3: dataset.path"))
	b.step("add a parameter",
		script(`const spec = document.querySelector("#spec"); spec.focus(); spec.setSelectionRange(spec.value.indexOf("std"), spec.value.indexOf("std"))`),
		script(`[...document.querySelectorAll(".side details > summary")].filter((s) => /^(Methods|ddiff$)/.test(s.textContent)).forEach((s) => s.click())`),
		script(`[...document.querySelectorAll(".side dt button")].find((x) => x.textContent === "data_step").click()`),
		until(`/ {6}std: 3 #.*\n {6}data_step: gradient\n/.test(document.querySelector("#spec").value)`), has("Line 10: tasks[0].params.data_step"))
	b.step("drop a file", script(`const files = new DataTransfer(); files.items.add(new File(["name: dropped\ntasks: [nonsense]\nsteps: many\n"], "a.yaml"));
		document.querySelector("#spec").dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true }))`),
		until(`document.querySelector("#spec").value.startsWith("name: dropped")`), has("nonsense"), has("want an integer"))
	b.step("type a wrong campaign",
		script(`const spec = document.querySelector("#spec"); spec.focus(); spec.select()`), chromedp.KeyEvent(kb.Delete),
		chromedp.SendKeys("#spec", strings.Replace(text, "inpaint_box", "inpaint_bx", 1)), until(`document.querySelector(".problems")?.innerText.includes("inpaint_bx")`),
		until(`document.querySelector(".submit button.primary").disabled`))
	b.step("correct it", script(fmt.Sprintf(`const spec = document.querySelector("#spec"); spec.value = %q; spec.dispatchEvent(new InputEvent("input", { bubbles: true }))`, text)),
		has("This campaign is valid: 12 items of 6 images"))
	b.audit("form")
	b.shot("page-submit")
	b.step("submit it", chromedp.Click(".submit button.primary"), until(`location.hash.startsWith("#/campaigns/photographs-")`))
	return evaluate[string](b, "read the id", `location.hash.split("/")[2]`)
}

const doneCount = `Number(document.querySelector(".counts .done strong")?.innerText)`

// followed sees the campaign of the page move, pauses and resumes it, and waits for its end. withTokens is the address of a coordinator that requires
// tokens.
func followed(b *browser, c *Cluster, withTokens, id string) {
	b.t.Helper()
	b.step("watch it move", until(doneCount+` >= 2`))
	b.step("pause it", press("Pause"), until(`document.querySelector(".head .phase").innerText.startsWith("paused")`))
	b.audit("paused campaign")
	base := b.base
	b.base = withTokens
	signedIn(b, c, id)
	b.base = base
	b.step("open it with the session of the first port", b.open("#/campaigns/"+id), until(`document.querySelector(".head .phase").innerText === "running"`))
	b.step("watch it further", until(doneCount+` >= 5`))
	b.shot("page-running")
	b.step("wait for its end", has("2 items without a result"), until(`document.querySelector(".head .phase").innerText === "finished"`), has("Device time"))
	b.audit("campaign with failures")
}

// asAdmin signs in with the token of an administrator.
func asAdmin(c *Cluster, b *browser) action {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		return chromedp.Do(ctx, chromedp.WaitVisible("[name=token]"), chromedp.SendKeys("[name=token]", c.token(b.ctx, b.t, "admin")+kb.Enter), has("vera (admin)"))
	})
}

// inReport is an expression about the page of a report, which is in a frame.
func inReport(expression string) string {
	return `((document) => ` + expression + `)(document.querySelector("iframe").contentDocument)`
}

// verbs are the texts of the buttons and links that change something.
const verbs = `[...document.querySelectorAll("button, a.button")].map((e) => e.innerText).filter((t) => /Submit|Pause|Resume|Cancel|Retry/.test(t)).join()`

// signedIn signs in as a viewer, who cannot change the paused campaign, and as an administrator, who resumes it.
func signedIn(b *browser, c *Cluster, id string) {
	b.t.Helper()
	b.expect("status of 401")
	signIn := func(secret string) action {
		return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
			return chromedp.Do(ctx, chromedp.WaitVisible("[name=token]"), chromedp.SendKeys("[name=token]", secret+kb.Enter))
		})
	}
	b.step("open the page without a token", b.open("#/campaigns/"+id), has("Sign in"))
	b.audit("sign in")
	b.step("sign in with a false token", signIn("ddiff_false"), has("This token is unknown or revoked"))
	b.step("sign in as a viewer", script(`document.querySelector("[name=token]").value = ""`), signIn(c.token(b.ctx, b.t, "viewer")), has("vera (viewer)"),
		until(`document.querySelector(".head .phase").innerText.startsWith("paused") && document.querySelectorAll(".row").length > 0`))
	if shown := evaluate[string](b, "look for verbs", verbs); shown != "" {
		b.t.Errorf("a viewer sees %s", shown)
	}
	b.audit("campaign of a viewer")
	b.step("open the list as a viewer", b.open("#/campaigns"), until(`document.querySelectorAll(".campaigns tbody tr").length === 1`), until(verbs+` === ""`))
	b.step("sign out", press("Sign out"), chromedp.WaitVisible("[name=token]"))
	b.step("sign in as an administrator", signIn(c.token(b.ctx, b.t, "admin")), has("vera (admin)"), until(verbs+`.includes("Submit")`))
	b.step("open the campaign as an administrator", b.open("#/campaigns/"+id), until(verbs+`.includes("Cancel")`))
	b.step("resume it", press("Resume"), until(`document.querySelector(".head .phase").innerText === "running"`))
	b.step("open its item", chromedp.Click(".row .open"), chromedp.WaitVisible("#viewer-title"))
	b.step("sign out again", b.open("#/campaigns"), press("Sign out"), chromedp.WaitVisible("[name=token]"))
	b.expect("")
}

// hostileName is markup that would rename the page if a browser took it for an element.
const hostileName = `<img src=x onerror="document.title='broken'">`

// hostile looks at a campaign whose name and whose image's name are markup.
func hostile(b *browser, c *Cluster) {
	b.t.Helper()
	dir := b.t.TempDir()
	photograph, err := os.ReadFile(filepath.Join(root, "examples", "images", "coffee.png"))
	must(b.t, err)
	images := filepath.Join(dir, "images")
	must(b.t, os.Mkdir(images, 0o755))
	must(b.t, os.WriteFile(filepath.Join(images, hostileName+".png"), photograph, 0o644))
	file := filepath.Join(dir, "hostile.yaml")
	must(b.t, os.WriteFile(file, fmt.Appendf(nil, "name: %q\ndataset: {path: %q, size: 64, fit: resize}\ntasks: [denoise]\nsteps: 10\nkeep_states: every 4\nmethods: [ddiff, ddiff_hqs]\n", hostileName, images), 0o644))
	out, err := c.Output(b.ctx, "submit", file)
	must(b.t, err)
	id := strings.TrimSpace(out)
	_, err = c.Output(b.ctx, "status", id, "--watch")
	must(b.t, err)
	clean := func(where string) {
		if evaluate[bool](b, "look for markup", `document.title === "broken" || document.querySelector("[onerror]") !== null`) {
			b.t.Errorf("%s takes a name for markup", where)
		}
	}
	b.step("open a campaign with a hostile name", b.open("#/campaigns/"+id), until(`document.querySelectorAll(".row").length === 2`), has(hostileName))
	b.step("compare quality and cost", press("Quality per cost"), until(`document.querySelector(".gallery img")?.naturalWidth > 0`))
	b.audit("quality per cost")
	b.step("compare its methods", press("Compare…"), has("1 measurement in both"), until(`document.querySelector("[name=where_a]").value === "method=ddiff"`),
		until(`[...document.querySelectorAll("#conditions option")].map((o) => o.value).includes("task=denoise")`))
	b.audit("comparison of conditions")
	b.expect("status of 422")
	b.step("mistype a condition", script(`const where = document.querySelector("[name=where]"); where.value = "tsk=denoise"; where.dispatchEvent(new Event("change", { bubbles: true }))`),
		has("no result has this property"))
	b.expect("")
	b.step("begin another like it", b.open("#/campaigns/"+id), press("Again with changes…"),
		until(`document.querySelector("#spec").value.includes("\n  - name: denoise")`), has("This campaign is valid: 2 items of 1 image"))
	b.step("open it again", b.open("#/campaigns/"+id), until(`document.querySelectorAll(".row").length === 2`))
	b.step("open its image", chromedp.Click(".row .open"), chromedp.WaitVisible(".viewer .u-wrap canvas"),
		until(fmt.Sprintf(`document.querySelector("#viewer-title").innerText.includes(%q)`, hostileName)))
	clean("an item")
	b.step("see its states", script(`document.querySelector(".states").scrollIntoView()`), has("after the steps every 4"), until(`document.querySelector(".states img").naturalWidth === 3 * 64`))
	b.audit("states")
	b.step("read its states", script(`fetch(document.querySelector(".states img").src.replace(".png", ".npy")).then((a) => a.text()).then((npy) => { document.body.dataset.npy = npy.slice(0, 128) })`),
		until(`document.body.dataset.npy?.includes("(3, 3, 64, 64)")`))
	b.step("open its report", b.open("#/campaigns/"+id), press("Report"), until(inReport(`document.documentElement.dataset.ready === "1" && document.body.innerText.includes(`+strconv.Quote(hostileName)+`)`)))
	clean("the report")
	b.step("see its name in the list", b.open("#/campaigns"), has(hostileName), until(`document.querySelectorAll(".campaigns tbody tr").length === 3`))
	clean("the list")
}

// solved looks at an item while a worker solves it, and ends at the list.
func solved(b *browser, c *Cluster) {
	b.t.Helper()
	dir := b.t.TempDir()
	photograph, err := os.ReadFile(filepath.Join(root, "examples", "images", "coffee.png"))
	must(b.t, err)
	must(b.t, os.WriteFile(filepath.Join(dir, "coffee.png"), photograph, 0o644))
	file := filepath.Join(b.t.TempDir(), "slow.yaml")
	must(b.t, os.WriteFile(file, fmt.Appendf(nil, "name: slow\ndataset: {path: %q, size: 128}\ntasks: [hdr]\nsteps: 900\n", dir), 0o644))
	out, err := c.Output(b.ctx, "submit", file)
	must(b.t, err)
	b.step("open a campaign that runs", b.open("#/campaigns/"+strings.TrimSpace(out)), until(`document.querySelectorAll(".row").length === 1`))
	b.step("open its item while a worker solves it", chromedp.Click(".row .open"),
		until(`/^Step [1-9]\d* of 900 on worker-/.test(document.querySelector(".viewer .chart h3")?.innerText)`), chromedp.WaitVisible(".viewer .u-wrap canvas"))
	b.audit("running item")
	b.step("see it in the fleet", b.open("#/fleet"), until(`/coffee, step \d+ of 900/.test(document.querySelector("table.list").innerText)`))
	b.step("end at the list", b.open("#/campaigns"), until(`document.querySelectorAll(".campaigns tbody tr").length === 5`))
}

// stranger has a browser alone: it begins a campaign of two methods from the template of a task, compares them when it has ended, and downloads the ten
// worst pictures. It returns how long that took, with the time of the worker.
func stranger(b *browser, c *Cluster) time.Duration {
	b.t.Helper()
	begin := time.Now()
	edit := func(from, to string) action {
		return script(fmt.Sprintf(`const spec = document.querySelector("#spec"); spec.value = spec.value.replace(%s, %q); spec.dispatchEvent(new InputEvent("input", { bubbles: true }))`, from, to))
	}
	b.step("come as a stranger", b.open("#/campaigns"), press("Submit a campaign"), until(`document.querySelectorAll("[name=template] option").length > 10`),
		script(`const select = document.querySelector("[name=template]"); select.value = "denoise"; select.dispatchEvent(new Event("change", { bubbles: true }))`),
		until(`document.querySelector("#spec").value.includes("methods: [ddiff]")`))
	b.step("name the pictures and another method", edit(`/path: .*/`, "path: '"+c.Images()+"'"), edit(`"[ddiff]"`, "[ddiff, dpir]"), has("This campaign is valid: 12 items of 6 images"))
	b.step("submit it", chromedp.Click(".submit button.primary"), until(`location.hash.startsWith("#/campaigns/denoise-")`))
	b.step("wait for its end", until(`document.querySelector(".head .phase")?.innerText === "finished"`))
	b.step("compare its two methods", press("Compare…"), has("6 measurements in both"), until(`document.querySelectorAll(".scroll tbody tr").length === 1`))
	b.step("sort by the worst", script(`history.back()`), until(`document.querySelectorAll(".row").length === 12`),
		script(`const sort = document.querySelector("[name=sort]"); sort.value = "psnr"; sort.dispatchEvent(new Event("change", { bubbles: true }))`),
		until(`/sort=psnr&limit=10$/.test(document.querySelector(".toolbar a[download]")?.href)`))
	b.step("download the ten worst", script(`fetch(document.querySelector(".toolbar a[download]").href).then((a) => a.arrayBuffer()).then((tar) => {
		document.body.dataset.worst = new TextDecoder("latin1").decode(tar).match(/00[01][0-9] [^\0]*\/restored\.png/g).length })`),
		until(`document.body.dataset.worst === "10"`))
	return time.Since(begin)
}

// retried retries the items whose photograph was missing.
func retried(b *browser) {
	b.step("filter by a failed item", chromedp.Click(".counts .failed button"), until(`document.querySelectorAll(".row").length === 2`), has("coffee"))
	b.shot("page-failures")
	b.step("retry", press("Retry all"), until(doneCount+` === 12`), until(`document.querySelector(".head .phase").innerText === "finished"`))
	b.step("clear the filter", press("Clear the filters"), until(`document.querySelector(".toolbar output").innerText === "12 items"`))
}

// viewed opens an image, divides it, zooms, and steps to the next.
func viewed(b *browser, id string) {
	b.step("sort by the score", script(`const sort = document.querySelector("[name=sort]"); sort.value = "-psnr"; sort.dispatchEvent(new Event("change", { bubbles: true }))`),
		until(`location.hash.includes("sort=-psnr") && document.querySelector(".toolbar output").innerText === "12 items"`))
	b.step("download the first ten", until(`/\/archive\?state=done&sort=-psnr&limit=10$/.test(document.querySelector(".toolbar a[download]").href)`),
		script(`fetch(document.querySelector(".toolbar a[download]").href).then((a) => a.arrayBuffer()).then((tar) => { document.body.dataset.tar = new TextDecoder().decode(tar.slice(0, 4)) + tar.byteLength })`),
		until(`/^0001\d{6,}$/.test(document.body.dataset.tar)`))
	b.shot("page-campaign")
	b.step("open an image", chromedp.Click(".row .open"), chromedp.WaitVisible("dialog.viewer #stage"),
		until(`document.querySelectorAll("#stage .frame img").length === 3 && [...document.querySelectorAll("#stage img")].every((i) => i.complete && i.naturalWidth > 0)`))
	b.step("wait for the curves", chromedp.WaitVisible(".viewer .u-wrap canvas"))
	b.audit("image")
	b.step("divide it", chromedp.Click(`[name=layer][value=divide-measurement]`), chromedp.WaitVisible(`.slide input`), chromedp.Focus(`.slide input`),
		chromedp.KeyEvent(strings.Repeat(kb.ArrowLeft, 20)), until(`getComputedStyle(document.querySelector("#stage")).getPropertyValue("--cut") === "30%"`),
		until(`document.querySelector("#stage .over").complete`))
	b.shot("page-image")
	b.step("see its error map", chromedp.Click(`[name=layer][value=error]`), until(`document.querySelector("#error-end").innerText === "0.2"`),
		until(`getComputedStyle(document.querySelector("#stage .restored .inner")).filter === 'url("#error-filter")' && document.querySelector("#stage .over").complete`))
	const zoomed = `[...document.querySelectorAll("#stage .inner")].map((i) => getComputedStyle(i).transform.replace(/-?[\d.]+/g, (v) => Math.round(v * 10)))`
	b.step("zoom", press("+"), chromedp.Focus("#stage"), chromedp.KeyEvent("+"), has("188 %"),
		until(zoomed+`.every((m, _, all) => m !== "none" && m === all[0])`), chromedp.KeyEvent("0"), has("100 %"))
	first := evaluate[string](b, "read the address", `location.hash`)
	b.step("open the next image", chromedp.KeyEvent("n"), until(fmt.Sprintf(`location.hash !== %q && document.querySelector("#viewer-title")`, first)))
	b.step("read its attempts", chromedp.WaitVisible(".viewer .u-wrap canvas"), script(`document.querySelectorAll(".viewer summary").forEach((s) => s.click())`), has("Attempt 1"))
	b.step("close it", chromedp.KeyEvent(kb.Escape), until(`!location.hash.includes("item=") && !document.querySelector("dialog.viewer")`))
	b.step("open the report", b.open("#/campaigns/"+id), press("Report"), until(inReport(`document.documentElement.dataset.ready === "1"`)),
		until(inReport(`[...document.images].filter((i) => i.loading !== "lazy").every((i) => i.complete && i.naturalWidth > 0)`)))
}

// compared chooses two campaigns in the list and compares them.
func compared(b *browser) {
	b.step("choose two campaigns", b.open("#/campaigns"), until(`document.querySelectorAll(".campaigns tbody tr").length === 2`),
		chromedp.Click(".campaigns tbody tr:nth-child(1) input"), chromedp.Click(".campaigns tbody tr:nth-child(2) input"))
	b.audit("list")
	b.shot("page-campaigns")
	b.step("compare them", press("Compare 2 of 2"), has("12 measurements in both"), has("inpaint_box"),
		until(`document.activeElement.id === "main"`)) // a screen reader reads the new screen
	b.audit("comparison")
	b.shot("page-compare")
	b.step("tell the problems apart", until(`[...document.querySelectorAll(".scroll tbody th .half")].every((e) => /^σ 0.05, .*[0-9]+x[0-9]+ /.test(e.innerText))`),
		until(`[...document.querySelectorAll(".scroll tbody tr")].every((r) => r.innerText.includes("†") === r.innerText.includes("–"))`))
	b.step("compare a score whose best value is zero",
		script(`const metric = document.querySelectorAll(".toolbar select")[2]; metric.value = "sharpness"; metric.dispatchEvent(new Event("change", { bubbles: true }))`),
		until(`location.hash.includes("metric=sharpness") && document.querySelector(".scroll tbody td.num") && !document.querySelector(".scroll .win, .scroll .loss")`))
}

// looked looks at the fleet, at a phone's size in the dark, and ends at the list.
func looked(b *browser, id string) {
	// The clock of the browser is a day ahead.
	b.step("open the fleet", script(`const now = Date.now; Date.now = () => now() + 864e5`), b.open("#/fleet"), has("worker-1"), has("coordinator-2"),
		until(`/worker-1[^]*ready/.test(document.querySelector("table.list").innerText)`))
	if shown := evaluate[string](b, "read the fleet", `document.querySelector("main").innerText`); strings.Contains(shown, "silent") || strings.Contains(shown, " h ") {
		b.t.Errorf("beats of seconds ago are shown as %q", shown)
	}
	b.audit("fleet")
	b.shot("page-fleet")
	for _, screen := range []string{"#/campaigns", "#/campaigns/" + id, "#/fleet", "#/submit", "#/compare"} {
		b.step("open "+screen+" on a phone", window(360, 740, "dark"), b.open(screen), until(`document.querySelector("h1")`))
		b.audit("phone " + screen)
	}
	b.step("go back to the list", window(1280, 900, "light"), b.open("#/campaigns"), until(`document.querySelectorAll(".campaigns tbody tr").length === 2`))
}

// forwarder passes connections to an address that can change, as the address of a service does.
type forwarder struct {
	address string
	to      atomic.Pointer[string]
}

func forward(t *testing.T, to string) *forwarder {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	f := &forwarder{address: l.Addr().String()}
	f.to.Store(&to)
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				out, err := new(net.Dialer).DialContext(t.Context(), "tcp", *f.to.Load())
				if err != nil {
					return
				}
				defer out.Close()
				go func() {
					defer in.Close()
					io.Copy(in, out) //nolint:errcheck // either end closes
				}()
				io.Copy(out, in) //nolint:errcheck // either end closes
			}()
		}
	}()
	return f
}

// pageAddress is the line that ddiff view and ddiff run --open print.
var pageAddress = regexp.MustCompile(`page: (http://127\.0\.0\.1:\d+/)(#token=\w+)`)

// local looks at a run in progress, and at its output with ddiff view.
func local(b *browser, c *Cluster) {
	out := filepath.Join(b.t.TempDir(), "photographs")
	serve(b, c, "run", filepath.Join(root, "examples", "images"), "--task", "super_resolution", "--size", "64", "--steps", "40", "--batch", "1", "--out", out, "--open")
	b.step("open a run", window(1280, 900, "light"), b.open("#/campaigns"), chromedp.Click(".campaigns th a"),
		until(doneCount+` >= 1 && document.querySelector(".head .phase").innerText === "running"`))
	b.step("watch it end", until(doneCount+` === 6 && document.querySelector(".head .phase").innerText === "finished"`))
	b.step("open its report", press("Report"), until(inReport(`document.documentElement.dataset.ready === "1"`)))
	serve(b, c, "view", out)
	b.step("view the output", b.open("#/campaigns/photographs"), until(`document.querySelectorAll(".row").length === 6`), until(`!document.body.innerText.includes("Pause")`))
	b.step("open an image of it", chromedp.Click(".row .open"), chromedp.WaitVisible(".viewer .u-wrap canvas"))
	b.audit("output")
}

// serve starts a program with a page on this machine, and leaves it running.
func serve(b *browser, c *Cluster, args ...string) {
	b.t.Helper()
	cmd := c.Command(b.t.Context(), args...)
	out, err := os.CreateTemp(b.t.TempDir(), "output")
	must(b.t, err)
	cmd.Stdout, cmd.Stderr = out, out
	must(b.t, cmd.Start())
	b.t.Cleanup(func() {
		must(b.t, cmd.Process.Signal(os.Interrupt))
		_ = cmd.Wait() // its exit code is that of an interrupt
	})
	b.step("wait for "+args[0], chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		for {
			text, err := os.ReadFile(out.Name())
			if err != nil {
				return err
			}
			if found := pageAddress.FindSubmatch(text); found != nil {
				b.base = string(found[1])
				return chromedp.Do(ctx, chromedp.Navigate(b.base+string(found[2])))
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%w: %s", ctx.Err(), text)
			case <-time.After(100 * time.Millisecond):
			}
		}
	}))
}

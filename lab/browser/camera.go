package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// screenshot is one file: a window, and what the page shows in it.
type screenshot struct {
	file          string
	width, height int64   // 0 for a desktop
	scale         float64 // 0 for 1
	scheme        string  // light if empty, or dark
	query         string
	prepare       chromedp.Action[chromedp.Void] // nil for nothing
}

const (
	desktopWidth, desktopHeight = 1440, 900
	phoneWidth, phoneHeight     = 390, 844
	tallHeight                  = 1296 // down to the decisions

	english = "lang=en"
	limited = "&key=user:1&db=0&by=throttle+15+30+60"
)

func loadedScreenshots() []screenshot {
	return []screenshot{
		{file: "page-whole.png", height: tallHeight, query: english},
		{file: "page-dark.png", height: tallHeight, scheme: "dark", query: english},
		{file: "page-drawer.png", query: english + limited},
		{file: "page-phone.png", width: phoneWidth, height: phoneHeight, scale: 2, query: english + limited},
		{file: "page-chinese.png", query: "lang=zh"},
	}
}

type camera struct {
	browser, url, dir string
	rangeMs           int64 // shown by the charts
}

func (c *camera) takeAll(ctx context.Context, all []screenshot) error {
	for _, s := range all {
		if err := c.take(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.file, err)
		}
	}
	return nil
}

func (c *camera) take(ctx context.Context, s screenshot) error {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	tab, closeTab := openTab(ctx, c.browser)
	defer closeTab()
	width, height := cmp.Or(s.width, desktopWidth), cmp.Or(s.height, desktopHeight)
	err := chromedp.Do(tab,
		chromedp.EmulateViewport(width, height, chromedp.EmulateScale(cmp.Or(s.scale, 1))),
		colorScheme(cmp.Or(s.scheme, "light")),
		chromedp.Navigate(c.url+"?"+s.query),
		chromedp.WaitReady(chromedp.CSS("#chart-decisions .stroke.first")),
	)
	if err == nil {
		_, err = chromedp.Run(tab, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector("#ranges [value='%d']").click()`, c.rangeMs)))
	}
	if err == nil && s.prepare != nil {
		err = chromedp.Do(tab, s.prepare)
	}
	if err == nil {
		err = chromedp.Do(tab, settled(400*time.Millisecond))
	}
	if err != nil {
		return err
	}
	taken, err := chromedp.Run(tab, chromedp.CaptureScreenshot())
	if err == nil {
		taken, err = withPalette(taken)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.dir, s.file), taken, 0o644) //nolint:gosec // the screenshots are public
}

func settled(d time.Duration) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
			return nil
		}
	})
}

func colorScheme(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})
}

// withPalette rewrites a PNG with the 256 most frequent colours that differ visibly, which takes a third of
// the bytes. Other colours, at the edges of letters, become the nearest of them.
func withPalette(file []byte) ([]byte, error) {
	picture, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	box := picture.Bounds()
	rgba := image.NewRGBA(box)
	draw.Draw(rgba, box, picture, box.Min, draw.Src)
	palette := frequentColors(rgba)
	paletted := image.NewPaletted(box, palette)
	nearest := map[color.RGBA]uint8{}
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			c := rgba.RGBAAt(x, y)
			index, known := nearest[c]
			if !known {
				index = uint8(palette.Index(c)) //nolint:gosec // of 256
				nearest[c] = index
			}
			paletted.SetColorIndex(x, y, index)
		}
	}
	var b bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, paletted)
	return b.Bytes(), err
}

func frequentColors(picture *image.RGBA) color.Palette {
	counts := map[color.RGBA]int{}
	for i := 0; i < len(picture.Pix); i += 4 {
		counts[color.RGBA{picture.Pix[i], picture.Pix[i+1], picture.Pix[i+2], picture.Pix[i+3]}]++
	}
	colors := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int { return counts[b] - counts[a] })
	var palette color.Palette
	for _, c := range colors {
		if len(palette) == 256 {
			break
		}
		if !slices.ContainsFunc(palette, func(other color.Color) bool { return alike(c, other.(color.RGBA)) }) {
			palette = append(palette, c)
		}
	}
	return palette
}

func alike(a, b color.RGBA) bool {
	square := func(x, y uint8) int { return (int(x) - int(y)) * (int(x) - int(y)) }
	return square(a.R, b.R)+square(a.G, b.G)+square(a.B, b.B) < 24
}

// pageTimeout bounds all work with a page, a slow start of the browser included.
const pageTimeout = 50 * time.Minute

var errNoBrowser = errors.New("requires chromium from Debian's package chromium: run scripts/deps.sh")

func findBrowser() (path string, err error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err = exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errNoBrowser
}

// openTab starts a headless browser with an empty profile. Chromium's sandbox does not work as root, and only
// our own page is opened.
func openTab(ctx context.Context, browser string) (tab context.Context, closeTab func()) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser), chromedp.WSURLReadTimeout(pageTimeout))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, endBrowser := chromedp.NewExecAllocator(ctx, options...)
	tab, endTab := chromedp.NewContext(allocator)
	return tab, func() {
		endTab()
		endBrowser()
	}
}

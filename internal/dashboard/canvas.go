package dashboard

import (
	"errors"
	"fmt"
	"html"
	"image"
	"image/color"
	"strconv"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// ink is a colour by the name of its class in the page's style sheet. Plot's own SVG has fixed colours in style
// attributes, which the Content-Security-Policy forbids.
type ink string

// RGBA implements color.Color; nothing uses it.
func (ink) RGBA() (r, g, b, a uint32) { return 0, 0, 0, 0xffff }

// canvas is a vg.Canvas that writes SVG with classes for colours. It supports what line charts use; anything else is an
// error.
type canvas struct {
	width, height vg.Length
	pen           pen
	pushed        []pen
	svg           strings.Builder
	err           error
}

type pen struct {
	ink   ink
	width vg.Length
	dash  string
}

var errNotLines = errors.New("dashboard: chart: only straight lines, areas and horizontal text can be drawn")

func (c *canvas) Size() (width, height vg.Length) { return c.width, c.height }

func (c *canvas) SetLineWidth(w vg.Length) { c.pen.width = w }

func (c *canvas) SetLineDash(pattern []vg.Length, _ vg.Length) {
	lengths := make([]string, len(pattern))
	for i, l := range pattern {
		lengths[i] = number(l)
	}
	c.pen.dash = strings.Join(lengths, " ")
}

func (c *canvas) SetColor(to color.Color) { c.pen.ink, _ = to.(ink) }

func (c *canvas) Push() { c.pushed = append(c.pushed, c.pen) }

func (c *canvas) Pop() {
	last := len(c.pushed) - 1
	c.pen, c.pushed = c.pushed[last], c.pushed[:last]
}

func (c *canvas) Rotate(float64)                      { c.err = errNotLines }
func (c *canvas) Translate(vg.Point)                  { c.err = errNotLines }
func (c *canvas) Scale(_, _ float64)                  { c.err = errNotLines }
func (c *canvas) DrawImage(vg.Rectangle, image.Image) { c.err = errNotLines }

func (c *canvas) Stroke(path vg.Path) {
	if c.pen.width <= 0 {
		return
	}
	fmt.Fprintf(&c.svg, `<path class="stroke %s" stroke-width="%s"`, c.pen.ink, number(c.pen.width))
	if c.pen.dash != "" {
		fmt.Fprintf(&c.svg, ` stroke-dasharray="%s"`, c.pen.dash)
	}
	c.outline(path)
}

func (c *canvas) Fill(path vg.Path) {
	fmt.Fprintf(&c.svg, `<path class="area %s"`, c.pen.ink)
	c.outline(path)
}

// outline writes the path's data and closes its tag.
func (c *canvas) outline(path vg.Path) {
	c.svg.WriteString(` d="`)
	for _, step := range path {
		switch step.Type {
		case vg.MoveComp:
			c.step('M', step.Pos)
		case vg.LineComp:
			c.step('L', step.Pos)
		case vg.CloseComp:
			c.svg.WriteByte('Z')
		default:
			c.err = errNotLines
		}
	}
	c.svg.WriteString(`"/>`)
}

// step appends a path command with its point. SVG's y grows downwards, vg's upwards.
func (c *canvas) step(command byte, to vg.Point) {
	c.svg.WriteByte(command)
	c.svg.WriteString(number(to.X))
	c.svg.WriteByte(' ')
	c.svg.WriteString(number(c.height - to.Y))
}

// FillString writes a tick's label. Plot computes its left edge with the width of a font that the browser may not have,
// so the label is anchored at the edge that must not move: the middle on the x axis, the end on the y axis.
func (c *canvas) FillString(f font.Face, at vg.Point, text string) {
	var anchor string
	switch c.pen.ink {
	default:
		anchor = "start"
	case inkMarkX:
		anchor, at.X = "middle", at.X+f.Width(text)/2
	case inkMarkY:
		anchor, at.X = "end", at.X+f.Width(text)
	}
	fmt.Fprintf(&c.svg, `<text text-anchor="%s" x="%s" y="%s" font-size="%s">%s</text>`,
		anchor, number(at.X), number(c.height-at.Y), number(f.Font.Size), html.EscapeString(text))
}

// number formats a length with one decimal, a tenth of a pixel on most screens.
func number(l vg.Length) string {
	return strings.TrimSuffix(strconv.FormatFloat(l.Points(), 'f', 1, 64), ".0")
}

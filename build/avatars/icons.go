package main

import "math"

// icon is the picture of a tool: the hue of its tile, in degrees of the Oklch
// colour space, and the function that draws the shapes on it. Related tools
// have similar hues.
type icon struct {
	hue  float64
	draw func(c *canvas)
}

var icons = map[string]icon{
	// Tools that use the picture model.
	"sketch":              {320, sketch},
	"sketch-from-picture": {312, sketchFromPicture},
	"upscale-art":         {298, upscaleArt},
	// Tools that generate pictures without an input.
	"gradient": {305, gradient},
	"pattern":  {290, pattern},
	// Tools that change pictures.
	"resize":        {255, resize},
	"crop":          {240, crop},
	"adjust":        {270, adjust},
	"upscale":       {225, upscale},
	"photo-upscale": {210, photoUpscale},
	"cut-out":       {195, cutOut},
	// Tools that arrange colours or pictures on a sheet.
	"palette":       {155, palette},
	"collage":       {170, collage},
	"contact-sheet": {140, contactSheet},
	// Tools that make videos.
	"still-to-video": {15, stillToVideo},
	"slideshow":      {0, slideshow},
	"smooth-motion":  {345, smoothMotion},
	"video-to-gif":   {330, videoToGIF},
	// Tools that make sound.
	"speech":   {52, speech},
	"tune":     {38, tune},
	"waveform": {66, waveform},
	// Flows: several tools as one.
	"film-with-music": {26, filmWithMusic},
	"product-sheet":   {182, productSheet},
	"sketch-to-print": {308, sketchToPrint},
}

const middle = side / 2

// pencil returns the body and the tip of a pencil that points to the lower
// left.
func pencil(tip point, size float64) (body, lead shape) {
	// at returns a point of the pencil by its distance from the tip along and
	// across the pencil, as fractions of the pencil's size.
	at := func(along, across float64) point {
		const slant = math.Sqrt2 / 2
		return point{tip.x + size*slant*(along-across), tip.y - size*slant*(along+across)}
	}
	body = polygon(3, at(0.3, -0.14), at(1, -0.14), at(1, 0.14), at(0.3, 0.14))
	lead = polygon(2, at(0, 0), at(0.25, -0.13), at(0.25, 0.13))
	return body, lead
}

// smile draws the face of a smiling emoji.
func smile(c *canvas, cx, cy, r float64) {
	c.paint(disc(cx, cy, r), c.white)
	for _, x := range []float64{cx - r*0.33, cx + r*0.33} {
		c.paint(ellipse(x, cy-r*0.2, r*0.11, r*0.16), c.deep)
	}
	c.paint(arc(cx, cy, r*0.55, r*0.16, 25, 155), c.deep)
}

func sketch(c *canvas) {
	smile(c, 112, 140, 70)
	body, lead := pencil(point{132, 134}, 112)
	c.clear(grown(union(body, lead), 9))
	c.paint(body, c.light)
	c.paint(lead, c.white)
}

func sketchFromPicture(c *canvas) {
	photo(c, 118, 130, 148, 132)
	body, lead := pencil(point{126, 140}, 112)
	c.clear(grown(union(body, lead), 9))
	c.paint(body, c.light)
	c.paint(lead, c.white)
}

func upscaleArt(c *canvas) {
	c.paint(outline(box(middle, middle, 160, 160, 24), 14), c.light)
	smile(c, 105, 151, 39)
	c.paint(arrow(point{144, 112}, point{176, 80}, 18, 34), c.white)
}

func gradient(c *canvas) {
	c.shade(disc(middle, middle, 78), func(x, y float64) (tone, float64) {
		t := (x+y-2*middle)/(2*78*math.Sqrt2) + 0.5
		return c.white.mix(c.deep, t), 1
	})
	c.paint(outline(disc(middle, middle, 84), 10), c.white)
}

func pattern(c *canvas) {
	frame := box(middle, middle, 160, 160, 22)
	c.glaze(frame, c.deep, 0.75)
	const cell = 160.0 / 3
	turns := [9]bool{true, false, true, false, false, true, true, true, false}
	for i, turn := range turns {
		x0, y0 := 48+cell*float64(i%3), 48+cell*float64(i/3)
		x1, y1 := x0+cell, y0+cell
		if turn {
			x0, x1 = x1, x0
		}
		tile := box((x0+x1)/2, (y0+y1)/2, cell+0.8, cell+0.8, 0)
		bands := union(ring(x0, y0, cell/2, 15), ring(x1, y1, cell/2, 15))
		c.paint(both(both(bands, tile), frame), c.white)
	}
}

func ring(cx, cy, r, width float64) shape { return arc(cx, cy, r, width, -180, 180) }

func resize(c *canvas) {
	c.glaze(box(middle, middle, 132, 132, 4), c.light, 0.35)
	c.paint(outline(box(middle, middle, 142, 142, 6), 12), c.light)
	for _, x := range []float64{62, 194} {
		for _, y := range []float64{62, 194} {
			c.paint(box(x, y, 40, 40, 9), c.white)
		}
	}
}

func crop(c *canvas) {
	c.glaze(box(middle, middle, 92, 92, 0), c.light, 0.55)
	const w = 20
	c.paint(line(w, point{88, 46}, point{88, 168}, point{210, 168}), c.white)
	c.paint(line(w, point{46, 88}, point{168, 88}, point{168, 210}), c.white)
}

func adjust(c *canvas) {
	for i, x := range []float64{104, 160, 84} {
		y := 78 + 50*float64(i)
		c.paint(line(14, point{56, y}, point{200, y}), c.light)
		c.paint(disc(x, y, 23), c.white)
		c.paint(disc(x, y, 9), c.deep)
	}
}

// arrow returns an arrow that points to the upper right.
func arrow(from, to point, width, head float64) shape {
	return union(line(width, from, to), line(width, point{to.x - head, to.y}, to, point{to.x, to.y + head}))
}

func upscale(c *canvas) {
	c.paint(outline(box(middle, middle, 160, 160, 24), 14), c.light)
	c.paint(box(92, 164, 62, 62, 12), c.white)
	c.paint(arrow(point{134, 122}, point{176, 80}, 18, 38), c.white)
}

// photo draws a picture of hills and a sun, in a frame.
func photo(c *canvas, cx, cy, w, h float64) {
	frame := box(cx, cy, w, h, 20)
	inner := box(cx, cy, w-26, h-26, 9)
	c.paint(frame, c.white)
	c.clear(inner)
	left, bottom := cx-w/2, cy+h/2
	c.paint(both(disc(cx-w*0.19, cy-h*0.16, h*0.105), inner), c.white)
	c.paint(both(polygon(5, point{cx - w*0.12, bottom + 10}, point{cx + w*0.2, cy - h*0.08}, point{cx + w*0.62, bottom + 10}), inner), c.light)
	c.paint(both(polygon(5, point{left - 12, bottom + 10}, point{cx - w*0.17, cy + h*0.09}, point{cx + w*0.22, bottom + 10}), inner), c.white)
}

// badge draws a disc with a margin around it, in which the tile shows.
func badge(c *canvas, cx, cy, r float64) {
	c.clear(disc(cx, cy, r+9))
	c.paint(disc(cx, cy, r), c.white)
}

func photoUpscale(c *canvas) {
	photo(c, 118, 118, 148, 132)
	badge(c, 182, 178, 37)
	c.paint(arrow(point{170, 190}, point{195, 165}, 11, 24), c.deep)
}

func cutOut(c *canvas) {
	frame := box(middle, middle, 160, 160, 24)
	c.glaze(frame, c.light, 0.30)
	for i := range 16 {
		if (i+i/4)%2 == 0 {
			cell := box(68+40*float64(i%4), 68+40*float64(i/4), 40.5, 40.5, 0)
			c.glaze(both(cell, frame), c.light, 0.75)
		}
	}
	bust := union(disc(middle, 106, 34), both(ellipse(middle, 218, 66, 66), frame))
	c.clear(both(grown(bust, 9), frame))
	c.paint(bust, c.white)
}

func palette(c *canvas) {
	c.paint(without(ellipse(middle, middle, 88, 78), disc(166, 168, 22)), c.white)
	for _, p := range []struct{ x, y, r, hue float64 }{
		{80, 128, 17, 25}, {106, 87, 17, 75}, {156, 84, 17, 145}, {188, 122, 16, 250}, {112, 170, 17, 320},
	} {
		c.paint(disc(p.x, p.y, p.r), oklch(0.66, 0.17, p.hue))
	}
}

func collage(c *canvas) {
	c.paint(box(88, 100, 80, 104, 14), c.white)
	c.paint(box(174, 78, 68, 60, 14), c.light)
	c.paint(box(174, 164, 68, 88, 14), c.white)
	c.paint(box(88, 186, 80, 44, 14), c.light)
}

func contactSheet(c *canvas) {
	c.paint(box(middle, middle, 150, 176, 18), c.white)
	for i := range 6 {
		x, y := 96+64*float64(i%2), 73+48*float64(i/2)
		t := c.light
		if i == 1 || i == 2 || i == 5 {
			t = c.deep
		}
		c.paint(box(x, y, 50, 34, 6), t)
	}
	c.paint(line(8, point{76, 202}, point{116, 202}), c.light)
}

func stillToVideo(c *canvas) {
	photo(c, 118, 118, 148, 132)
	badge(c, 182, 178, 37)
	c.paint(play(184, 178, 38), c.deep)
}

func slideshow(c *canvas) {
	c.glaze(box(middle, 82, 104, 60, 14), c.light, 0.55)
	c.clear(box(middle, 100, 134, 72, 16))
	c.paint(box(middle, 100, 130, 68, 15), c.light)
	c.clear(box(middle, 146, 170, 118, 24))
	c.paint(box(middle, 146, 160, 108, 20), c.white)
	c.paint(play(131, 146, 58), c.deep)
}

func smoothMotion(c *canvas) {
	for i, p := range []point{{68, 176}, {92, 144}, {124, 118}} {
		c.glaze(disc(p.x, p.y, 20+5*float64(i)), c.light, 0.35+0.25*float64(i))
	}
	c.clear(disc(170, 96, 47))
	c.paint(disc(170, 96, 39), c.white)
}

func videoToGIF(c *canvas) {
	film := box(middle, middle, 176, 152, 20)
	holes := make([]shape, 0, 10)
	for i := range 5 {
		x := 64 + 32*float64(i)
		holes = append(holes, box(x, 69, 16, 13, 4), box(x, 187, 16, 13, 4))
	}
	c.paint(without(film, union(holes...)), c.white)
	const w = 13
	c.paint(union(
		arc(91, middle, 22, w, 0, 305), line(w, point{113, middle}, point{97, middle}),
		line(w, point{137, 106}, point{137, 150}),
		line(w, point{185, 106}, point{162, 106}, point{162, 150}), line(w, point{162, 128}, point{179, 128}),
	), c.deep)
}

func speech(c *canvas) {
	c.paint(union(box(middle, 116, 164, 116, 36), polygon(5, point{84, 160}, point{122, 160}, point{82, 200})), c.white)
	for i, h := range []float64{22, 48, 66, 38, 22} {
		x := 76 + 26*float64(i)
		c.paint(line(14, point{x, 116 - h/2 + 5}, point{x, 116 + h/2 - 5}), c.deep)
	}
}

func tune(c *canvas) {
	head := func(x, y float64) shape { return turned(ellipse(x, y, 28, 21), x, y, -22) }
	c.paint(union(line(14, point{107, 80}, point{107, 178}), line(14, point{191, 62}, point{191, 160})), c.white)
	c.paint(polygon(7, point{107, 74}, point{191, 56}, point{191, 76}, point{107, 94}), c.white)
	c.paint(head(87, 180), c.white)
	c.paint(head(171, 162), c.white)
}

func waveform(c *canvas) {
	for i, h := range []float64{36, 84, 148, 100, 56, 120, 40} {
		x := 53 + 25*float64(i)
		t := c.white
		if i%2 == 1 {
			t = c.light
		}
		c.paint(line(15, point{x, middle - h/2}, point{x, middle + h/2}), t)
	}
}

// chain draws the steps of a flow: two small discs, joined by a line to what
// the flow makes.
func chain(c *canvas) {
	c.glaze(line(10, point{60, 196}, point{60, 60}, point{104, 60}), c.light, 0.8)
	c.paint(disc(60, 196, 20), c.light)
	c.paint(disc(60, 128, 20), c.light)
}

func filmWithMusic(c *canvas) {
	chain(c)
	c.clear(box(152, 84, 136, 96, 24))
	c.paint(box(152, 84, 126, 86, 18), c.white)
	c.paint(play(154, 84, 44), c.deep)
	head := func(x, y float64) shape { return turned(ellipse(x, y, 19, 14), x, y, -22) }
	c.paint(line(9, point{142, 150}, point{142, 196}), c.white)
	c.paint(line(9, point{198, 140}, point{198, 186}), c.white)
	c.paint(polygon(5, point{142, 146}, point{198, 134}, point{198, 149}, point{142, 161}), c.white)
	c.paint(head(128, 198), c.white)
	c.paint(head(184, 188), c.white)
}

func productSheet(c *canvas) {
	chain(c)
	c.clear(box(154, 132, 130, 164, 24))
	c.paint(box(154, 132, 120, 154, 18), c.white)
	c.paint(line(9, point{126, 80}, point{182, 80}), c.light)
	for i := range 4 {
		t := c.light
		if i == 0 || i == 3 {
			t = c.deep
		}
		c.paint(disc(130+48*float64(i%2), 120+48*float64(i/2), 17), t)
	}
}

func sketchToPrint(c *canvas) {
	chain(c)
	c.paint(outline(box(152, 140, 128, 150, 20), 13), c.light)
	body, lead := pencil(point{118, 182}, 84)
	c.paint(body, c.white)
	c.paint(lead, c.white)
}

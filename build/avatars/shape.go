package main

import "math"

// shape returns the signed distance in pixels of a point from the edge of a
// shape. It is negative inside. Distances need to be exact only near the edge.
type shape func(x, y float64) float64

type point struct{ x, y float64 }

func disc(cx, cy, r float64) shape {
	return func(x, y float64) float64 { return math.Hypot(x-cx, y-cy) - r }
}

// box returns a rectangle of w by h pixels around a centre, with corners of
// radius r.
func box(cx, cy, w, h, r float64) shape {
	return func(x, y float64) float64 {
		dx, dy := math.Abs(x-cx)-w/2+r, math.Abs(y-cy)-h/2+r
		return math.Hypot(max(dx, 0), max(dy, 0)) + min(max(dx, dy), 0) - r
	}
}

// line returns a stroke with round ends through the given points.
func line(width float64, way ...point) shape {
	return func(x, y float64) float64 {
		d := math.Inf(1)
		for i := range len(way) - 1 {
			d = min(d, away(x, y, way[i], way[i+1]))
		}
		return d - width/2
	}
}

func away(x, y float64, a, b point) float64 {
	dx, dy := b.x-a.x, b.y-a.y
	t := min(max(((x-a.x)*dx+(y-a.y)*dy)/(dx*dx+dy*dy), 0), 1)
	return math.Hypot(x-a.x-t*dx, y-a.y-t*dy)
}

// arc returns a stroke with round ends along a circle, between two angles in
// degrees clockwise from the right. to must be greater than from.
func arc(cx, cy, r, width, from, to float64) shape {
	ends := func(deg float64) point {
		sin, cos := math.Sincos(deg * math.Pi / 180)
		return point{cx + r*cos, cy + r*sin}
	}
	a, b := ends(from), ends(to)
	return func(x, y float64) float64 {
		at := math.Atan2(y-cy, x-cx) * 180 / math.Pi
		for at < from {
			at += 360
		}
		if at <= to {
			return math.Abs(math.Hypot(x-cx, y-cy)-r) - width/2
		}
		return min(math.Hypot(x-a.x, y-a.y), math.Hypot(x-b.x, y-b.y)) - width/2
	}
}

// polygon returns a polygon with rounded corners. It extends r pixels beyond
// the given corners.
func polygon(r float64, corners ...point) shape {
	return func(x, y float64) float64 {
		d, within := math.Inf(1), false
		for i, a := range corners {
			b := corners[(i+1)%len(corners)]
			d = min(d, away(x, y, a, b))
			if (a.y > y) != (b.y > y) && x < (b.x-a.x)*(y-a.y)/(b.y-a.y)+a.x {
				within = !within
			}
		}
		if within {
			d = -d
		}
		return d - r
	}
}

// play returns a triangle that points to the right, like the symbol of a play
// button.
func play(cx, cy, size float64) shape {
	r := size * 0.14
	h := size - 2*r
	// The bounding box is shifted to the right of cx, because the centroid of
	// the triangle is left of the box's centre.
	left := cx - h*0.36
	return polygon(r, point{left, cy - h*0.52}, point{left + h*0.9, cy}, point{left, cy + h*0.52})
}

func ellipse(cx, cy, a, b float64) shape {
	return func(x, y float64) float64 {
		u, v := (x-cx)/a, (y-cy)/b
		k := math.Hypot(u, v)
		if k < 1e-6 {
			return -min(a, b)
		}
		// A first-order approximation, which is accurate near the edge.
		return (k - 1) * k / math.Hypot(u/a, v/b)
	}
}

func union(all ...shape) shape {
	return func(x, y float64) float64 {
		d := math.Inf(1)
		for _, s := range all {
			d = min(d, s(x, y))
		}
		return d
	}
}

func both(a, b shape) shape {
	return func(x, y float64) float64 { return max(a(x, y), b(x, y)) }
}

// without returns shape a without the part that shape b covers.
func without(a, b shape) shape {
	return func(x, y float64) float64 { return max(a(x, y), -b(x, y)) }
}

// outline returns a stroke of the given width along the inside of the edge of
// s.
func outline(s shape, width float64) shape {
	return func(x, y float64) float64 { return math.Abs(s(x, y)+width/2) - width/2 }
}

// grown returns the shape s enlarged by a distance on all sides.
func grown(s shape, by float64) shape {
	return func(x, y float64) float64 { return s(x, y) - by }
}

// turned returns the shape s rotated clockwise around a point, by an angle in
// degrees.
func turned(s shape, cx, cy, deg float64) shape {
	sin, cos := math.Sincos(-deg * math.Pi / 180)
	return func(x, y float64) float64 {
		dx, dy := x-cx, y-cy
		return s(cx+dx*cos-dy*sin, cy+dx*sin+dy*cos)
	}
}

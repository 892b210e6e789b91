package term

import "strings"

const (
	columnGap = 2
	cutFrom   = 16 // width to which columns are cut first: a date and a time fit
	cutTo     = 8  // width to which they are cut if that is not enough
)

// FormatTable returns rows in aligned columns for a terminal of the given width.
// If they do not fit, the widest columns are cut, but not the first one, which
// names the row. keepLast says that the last column has ids, which are never cut:
// they get lines of their own instead.
func FormatTable(rows [][]string, width int, keepLast bool) string {
	widths := measureColumns(rows)
	keepLast = keepLast && len(widths) > 1
	fits := cutColumns(widths, width, cutFrom, keepLast)
	if fits {
		return joinRows(rows, widths, width, keepLast)
	}
	if !keepLast {
		cutColumns(widths, width, cutTo, false)
		return joinRows(rows, widths, width, false)
	}
	last := len(widths) - 1
	cutColumns(widths[:last], width, cutTo, false)
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(joinRows([][]string{row[:last]}, widths[:last], width, false))
		b.WriteString(strings.Repeat(" ", columnGap) + row[last] + "\n")
	}
	return b.String()
}

// measureColumns returns the width of each column.
func measureColumns(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], CountColumns(cell))
		}
	}
	return widths
}

// cutColumns makes the widest columns narrower, but not narrower than least,
// until the table fits. It reports whether it does.
func cutColumns(widths []int, width, least int, keepLast bool) bool {
	total := columnGap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	cuttable := widths[min(1, len(widths)):]
	if keepLast {
		cuttable = widths[1 : len(widths)-1]
	}
	for total > width {
		widest := -1
		for i, w := range cuttable {
			if w > least && (widest < 0 || w > cuttable[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		cuttable[widest]--
		total--
	}
	return true
}

// joinRows returns rows in columns of the given widths. A line that is still too
// long is cut, unless it ends with an id.
func joinRows(rows [][]string, widths []int, width int, keepLast bool) string {
	var b strings.Builder
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			cell = Shorten(cell, widths[i])
			line += cell
			if i < len(row)-1 {
				line += strings.Repeat(" ", widths[i]-CountColumns(cell)+columnGap)
			}
		}
		if !keepLast {
			line = Shorten(line, width)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// FormatFields returns names and their values for a terminal of the given width.
// Long values are wrapped.
func FormatFields(rows [][]string, width int) string {
	names := 0
	for _, row := range rows {
		names = max(names, CountColumns(row[0]))
	}
	indent := strings.Repeat(" ", names+columnGap)
	var b strings.Builder
	for _, row := range rows {
		before := row[0] + strings.Repeat(" ", names-CountColumns(row[0])+columnGap)
		for _, line := range wrap(strings.Join(row[1:], " "), width-len(indent)) {
			b.WriteString(strings.TrimRight(before+line, " ") + "\n")
			before = indent
		}
	}
	return b.String()
}

// wrap breaks a text into lines of at most width columns, at spaces. A word that
// is longer stays whole, so that it can be copied.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for i, word := range strings.Split(text, " ") {
		switch {
		case i == 0:
			line = word
		case CountColumns(line)+1+CountColumns(word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

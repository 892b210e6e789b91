package music

// ensemble is who plays, by General MIDI program, from 0. A pad or a second
// below 0 is left out.
type ensemble struct {
	lead, chords, bass, pad int
	second                  int // plays the melody an octave below, where it is full
}

const nobody = -1

// ensembles are those that can be asked for whatever the mood.
var ensembles = map[string]ensemble{
	"piano": {
		lead:   0,
		chords: 0,
		bass:   0,
		pad:    nobody,
		second: nobody,
	},
	"strings": {
		lead:   40,
		chords: 45,
		bass:   43,
		pad:    48,
		second: 42,
	},
	"guitar": {
		lead:   24,
		chords: 25,
		bass:   32,
		pad:    nobody,
		second: nobody,
	},
	"winds": {
		lead:   73,
		chords: 71,
		bass:   70,
		pad:    60,
		second: 71,
	},
	"bells": {
		lead:   10,
		chords: 11,
		bass:   12,
		pad:    88,
		second: nobody,
	},
	"synth": {
		lead:   80,
		chords: 90,
		bass:   38,
		pad:    89,
		second: nobody,
	},
}

// pulse is how chords are played.
type pulse int

const (
	broken pulse = iota // note by note
	struck              // in the mood's rhythm
	waltz               // on all beats but the first
)

// stride is how the bass moves.
type stride int

const (
	roots   stride = iota // a long note for each chord
	fifths                // root and fifth by turns
	walking               // a note on each beat, towards the next root
	driving               // the root in quavers
)

// stroke is a line of the drums: a key and where it is hit. A letter is a
// semiquaver: X loud, x, o soft.
type stroke struct {
	key     int
	pattern string
}

// metre is what a mood does with three or four beats in a bar. Rhythms have a
// letter for each quaver, or for each semiquaver: x begins a note, - holds it,
// . is a rest.
type metre struct {
	rhythms []string // of the melody
	pulse   pulse
	figure  string // the order of a broken chord's notes, or the rhythm of a struck one
	drums   []stroke
}

// mood is a way to compose.
type mood struct {
	tempo  float64
	scales []string // that it likes, for the seed to choose from
	favour string   // degrees that make a progression likelier
	colour bool     // chords with sevenths
	short  bool     // notes are cut off early
	swing  float64  // where the second quaver of a beat falls
	free   float64  // how far the tempo gives way at the end of a phrase
	loud   int      // the middle of the velocities
	loose  int      // how far notes are from their place, in ticks
	centre int      // of the melody, as a pitch
	stride stride
	beat   float64 // of the drums, in dB beside the melody
	metres map[int]metre
	beats  []int // the metres, for the seed to choose from
	bands  []ensemble
}

// The keys of the General MIDI drums that are used here.
const (
	kick, snare, clap             = 36, 38, 39
	lowTom, closedHat, midTom     = 41, 42, 47
	openHat, crash, ride          = 46, 49, 51
	tambourine, shaker            = 54, 82
	woodHigh, woodLow, triangle   = 76, 77, 81
	mutedTriangle, orchestralBass = 80, 35
)

var moods = map[string]mood{
	"calm": {
		tempo:  76,
		scales: []string{"major", "major", "pentatonic", "lydian"},
		favour: "46",
		colour: true,
		swing:  0.5,
		free:   0.05,
		loud:   66,
		loose:  9,
		centre: 72,
		stride: roots,
		beats:  []int{4, 4, 3},
		metres: map[int]metre{
			4: {rhythms: []string{"x---x---", "x---x-x-", "x-x-x---", "x-----x-", "x-xxx---"}, pulse: broken, figure: "01212321"},
			3: {rhythms: []string{"x---x-", "x-x-x-", "x-----", "x--xx-"}, pulse: broken, figure: "012321"},
		},
		bands: []ensemble{
			{
				lead:   73,
				chords: 46,
				bass:   32,
				pad:    48,
				second: nobody,
			},
			{
				lead:   0,
				chords: 0,
				bass:   32,
				pad:    89,
				second: nobody,
			},
			{
				lead:   24,
				chords: 24,
				bass:   32,
				pad:    48,
				second: nobody,
			},
		},
	},
	"happy": {
		tempo:  116,
		scales: []string{"major", "major", "pentatonic", "mixolydian"},
		favour: "45",
		swing:  0.5,
		free:   0,
		loud:   84,
		loose:  7,
		centre: 74,
		stride: fifths,
		beat:   -7,
		beats:  []int{4, 4, 4, 3},
		metres: map[int]metre{
			4: {rhythms: []string{"x-xxx-x-", "x-x-xxx-", "xxx-x-x-", "x--xx-x-", "x-x-x-xx"}, pulse: struck, figure: "x.xx.xx.",
				drums: []stroke{{kick, "x.......x......."}, {clap, "....o.......x..."}, {shaker, "o.x.o.x.o.x.o.x."}, {tambourine, "............o..."}}},
			3: {rhythms: []string{"x-x-x-", "x-xxx-", "x---xx", "x--xx-"}, pulse: waltz,
				drums: []stroke{{kick, "x..........."}, {tambourine, "....o...o..."}, {shaker, "o.x.o.x.o.x."}}},
		},
		bands: []ensemble{
			{
				lead:   73,
				chords: 25,
				bass:   32,
				pad:    48,
				second: nobody,
			},
			{
				lead:   71,
				chords: 24,
				bass:   32,
				pad:    48,
				second: nobody,
			},
			{
				lead:   12,
				chords: 25,
				bass:   33,
				pad:    nobody,
				second: 11,
			},
		},
	},
	"sad": {
		tempo:  66,
		scales: []string{"minor", "minor", "harmonic-minor", "dorian"},
		favour: "46",
		colour: true,
		swing:  0.5,
		free:   0.07,
		loud:   64,
		loose:  10,
		centre: 70,
		stride: roots,
		beats:  []int{4, 4, 3},
		metres: map[int]metre{
			4: {rhythms: []string{"x-----xx", "x---x-x-", "x--xx---", "x-x-x---", "x-----x-"}, pulse: broken, figure: "01232123"},
			3: {rhythms: []string{"x---x-", "x--xx-", "x-x-x-", "x-----"}, pulse: broken, figure: "012321"},
		},
		bands: []ensemble{
			{
				lead:   40,
				chords: 0,
				bass:   43,
				pad:    48,
				second: 42,
			},
			{
				lead:   68,
				chords: 46,
				bass:   42,
				pad:    48,
				second: nobody,
			},
			{
				lead:   0,
				chords: 0,
				bass:   43,
				pad:    49,
				second: nobody,
			},
		},
	},
	"heroic": {
		tempo:  108,
		scales: []string{"major", "mixolydian", "minor", "dorian"},
		favour: "1467",
		swing:  0.5,
		free:   0.02,
		loud:   96,
		loose:  6,
		centre: 70,
		stride: driving,
		beat:   -5,
		beats:  []int{4},
		metres: map[int]metre{
			4: {rhythms: []string{"x---x--x", "x-----xxx---x---", "x--xx---", "x-x-x---", "x-----x-x-----x-"}, pulse: struck, figure: "x-xxx-x-x-xxx-x-",
				drums: []stroke{{orchestralBass, "X.......x......."}, {lowTom, "x.....o.x...o.o."}, {snare, "....x..o....x.oo"}}},
		},
		bands: []ensemble{
			{
				lead:   56,
				chords: 48,
				bass:   43,
				pad:    61,
				second: 60,
			},
			{
				lead:   60,
				chords: 48,
				bass:   58,
				pad:    52,
				second: 57,
			},
		},
	},
	"mysterious": {
		tempo:  84,
		scales: []string{"harmonic-minor", "phrygian", "dorian"},
		favour: "26",
		colour: true,
		swing:  0.5,
		free:   0.04,
		loud:   68,
		loose:  9,
		centre: 69,
		stride: roots,
		beat:   -12,
		beats:  []int{4, 3},
		metres: map[int]metre{
			4: {rhythms: []string{"..x-x---", "x--x----", "x---xxx-", "x-----xx", "xxx-----"}, pulse: broken, figure: "03121312",
				drums: []stroke{{lowTom, "o..............."}, {mutedTriangle, "......o......o.."}, {ride, "........o......."}}},
			3: {rhythms: []string{"x--x--", "..x-x-", "x---xx", "x-----"}, pulse: broken, figure: "031213",
				drums: []stroke{{lowTom, "o..........."}, {mutedTriangle, "......o....."}}},
		},
		bands: []ensemble{
			{
				lead:   71,
				chords: 46,
				bass:   43,
				pad:    49,
				second: nobody,
			},
			{
				lead:   8,
				chords: 11,
				bass:   32,
				pad:    91,
				second: nobody,
			},
			{
				lead:   69,
				chords: 46,
				bass:   42,
				pad:    52,
				second: nobody,
			},
		},
	},
	"playful": {
		tempo:  126,
		scales: []string{"major", "mixolydian", "lydian", "pentatonic"},
		favour: "25",
		short:  true,
		swing:  0.6,
		free:   0,
		loud:   82,
		loose:  6,
		centre: 72,
		stride: walking,
		beat:   -8,
		beats:  []int{4, 4, 3},
		metres: map[int]metre{
			4: {rhythms: []string{"xx.xx.x.", "x.x.xxx.", "xx.x.xx.", "xxx.x.x.", "x.xx.xx."}, pulse: struck, figure: "..x...x.",
				drums: []stroke{{woodHigh, "x.....o.....o..."}, {woodLow, "....x.......x..."}, {shaker, "..o...o...o...o."}, {triangle, "............o..."}}},
			3: {rhythms: []string{"x.xxx.", "xx.xx.", "x.x.xx", "xxx.x."}, pulse: waltz,
				drums: []stroke{{woodHigh, "x..........."}, {woodLow, "....x...x..."}, {triangle, "........o..."}}},
		},
		bands: []ensemble{
			{
				lead:   71,
				chords: 45,
				bass:   32,
				pad:    nobody,
				second: 70,
			},
			{
				lead:   13,
				chords: 45,
				bass:   70,
				pad:    nobody,
				second: nobody,
			},
			{
				lead:   72,
				chords: 24,
				bass:   32,
				pad:    nobody,
				second: 68,
			},
		},
	},
	"dreamy": {
		tempo:  88,
		scales: []string{"lydian", "major", "pentatonic", "dorian"},
		favour: "236",
		colour: true,
		swing:  0.5,
		free:   0.05,
		loud:   64,
		loose:  11,
		centre: 76,
		stride: roots,
		beats:  []int{4, 3, 3},
		metres: map[int]metre{
			4: {rhythms: []string{"x-x-x---", "x---x-x-", "x-xxx---", "x-x-x-x-", "..x-x-x-"}, pulse: broken, figure: "0123210123212321"},
			3: {rhythms: []string{"x-x-x-", "x---x-", "..x-x-", "x-xxx-"}, pulse: broken, figure: "012321"},
		},
		bands: []ensemble{
			{
				lead:   10,
				chords: 46,
				bass:   32,
				pad:    89,
				second: nobody,
			},
			{
				lead:   11,
				chords: 88,
				bass:   32,
				pad:    91,
				second: nobody,
			},
			{
				lead:   8,
				chords: 4,
				bass:   35,
				pad:    89,
				second: nobody,
			},
		},
	},
	"energetic": {
		tempo:  138,
		scales: []string{"minor", "dorian", "mixolydian", "pentatonic-minor"},
		favour: "67",
		swing:  0.5,
		free:   0,
		loud:   94,
		loose:  4,
		centre: 72,
		stride: driving,
		beat:   -2,
		beats:  []int{4},
		metres: map[int]metre{
			4: {rhythms: []string{"x-xx-xx-", "xx-xx-x-", "x-x-xxx-", "x--x--x-", "x-xxx-xx"}, pulse: struck, figure: "x--x--x-",
				drums: []stroke{{kick, "X.....x.x......."}, {snare, "....X.......X..."}, {closedHat, "x.o.x.o.x.o.x.o."}, {openHat, "..............o."}}},
		},
		bands: []ensemble{
			{
				lead:   81,
				chords: 27,
				bass:   34,
				pad:    90,
				second: nobody,
			},
			{
				lead:   80,
				chords: 62,
				bass:   38,
				pad:    89,
				second: nobody,
			},
			{
				lead:   65,
				chords: 16,
				bass:   33,
				pad:    62,
				second: 66,
			},
		},
	},
}

package policy

// lookalikes maps letters to the Latin letters that they look like, after case
// folding and decomposition. With few exceptions, different letters of one
// alphabet map to different letters, so that patterns in that alphabet keep
// their meaning. Letters that would break this rule are in faux.
var lookalikes = map[rune]string{
	// Cyrillic
	'а': "a", 'в': "b", 'с': "c", 'ԁ': "d", 'е': "e", 'є': "e", 'ҽ': "e", 'ԍ': "g", 'н': "h", 'һ': "h", 'і': "i", 'ј': "j", 'к': "k", 'ӏ': "l",
	'м': "m", 'о': "o", 'р': "p", 'ԛ': "q", 'ѕ': "s", 'т': "t", 'ѵ': "v", 'ѡ': "w", 'ԝ': "w", 'х': "x", 'у': "y",
	// Greek
	'α': "a", 'β': "b", 'ε': "e", 'ι': "i", 'κ': "k", 'ο': "o", 'ρ': "p", 'τ': "t", 'χ': "x", 'ζ': "z",
	// Armenian
	'հ': "h", 'ո': "n", 'օ': "o", 'ս': "u", 'զ': "q", 'ց': "g",
	// Cherokee, whose small letters fold to capitals
	'Ꭺ': "a", 'Ᏼ': "b", 'Ꮯ': "c", 'Ꭰ': "d", 'Ꭼ': "e", 'Ꮐ': "g", 'Ꮋ': "h", 'Ꭻ': "j", 'Ꮶ': "k", 'Ꮮ': "l", 'Ꮇ': "m", 'Ꮲ': "p", 'Ꭱ': "r", 'Ꮪ': "s",
	'Ꭲ': "t", 'Ꮩ': "v", 'Ꮃ': "w", 'Ꮓ': "z",
	// Latin letters with strokes and hooks, which do not decompose
	'ɑ': "a", 'ⱥ': "a", 'ƀ': "b", 'ɓ': "b", 'ƃ': "b", 'ƈ': "c", 'ȼ': "c", 'ɕ': "c", 'đ': "d", 'ð': "d", 'ɖ': "d", 'ɗ': "d", 'ɇ': "e", 'ǝ': "e", 'ə': "e",
	'ɛ': "e", 'ƒ': "f", 'ɠ': "g", 'ɡ': "g", 'ǥ': "g", 'ħ': "h", 'ɦ': "h", 'ı': "i", 'ɨ': "i", 'ɩ': "i", 'ȷ': "j", 'ɉ': "j", 'ʝ': "j", 'ƙ': "k", 'ł': "l",
	'ƚ': "l", 'ɫ': "l", 'ɭ': "l", 'ɱ': "m", 'ŋ': "n", 'ƞ': "n", 'ɲ': "n", 'ɳ': "n", 'ø': "o", 'ɵ': "o", 'ɔ': "o", 'ƥ': "p", 'ɋ': "q", 'ɍ': "r", 'ɽ': "r",
	'ɾ': "r", 'ʂ': "s", 'ȿ': "s", 'ŧ': "t", 'ƭ': "t", 'ʈ': "t", 'ƫ': "t", 'ʉ': "u", 'ʊ': "u", 'ʋ': "v", 'ɏ': "y", 'ƴ': "y", 'ƶ': "z", 'ȥ': "z", 'ʐ': "z",
	'æ': "ae", 'œ': "oe",
	// small capitals
	'ᴀ': "a", 'ʙ': "b", 'ᴄ': "c", 'ᴅ': "d", 'ᴇ': "e", 'ꜰ': "f", 'ɢ': "g", 'ʜ': "h", 'ɪ': "i", 'ᴊ': "j", 'ᴋ': "k", 'ʟ': "l", 'ᴍ': "m", 'ɴ': "n", 'ᴏ': "o",
	'ᴘ': "p", 'ʀ': "r", 'ꜱ': "s", 'ᴛ': "t", 'ᴜ': "u", 'ᴠ': "v", 'ᴡ': "w", 'ʏ': "y", 'ᴢ': "z",
}

// faux maps letters to the Latin letters that they can be mistaken for, the
// likeliest first. The resemblance may be to a small, a capital or a rotated
// letter.
var faux = map[rune]string{
	'η': "nh", 'ν': "vn", 'υ': "uy", 'μ': "um", 'ω': "w", 'γ': "y", 'σ': "osc", 'π': "n", 'θ': "o",
	'ь': "b", 'г': "r", 'з': "e", 'и': "un", 'п': "n", 'ш': "w", 'я': "r", 'э': "e", 'ц': "u", 'ѳ': "o",
}

// leet maps digits and symbols to the letters that they can stand for. An
// asterisk can stand for any vowel.
var leet = map[rune]string{
	'0': "o", '1': "il", '2': "z", '3': "e", '4': "a", '5': "s", '6': "gb", '7': "t", '8': "b", '9': "gq",
	'@': "a", '$': "s", '!': "il", '|': "il", '+': "t", '*': "aeiou", '€': "e", '¢': "c", '©': "c", '£': "l", '¥': "y", '®': "r", '×': "x",
}

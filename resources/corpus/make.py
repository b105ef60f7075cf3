"""Cuts the plays out of Project Gutenberg's texts: `python -m resources.corpus.make FOLDER`.

FOLDER holds the files `<play>_gut.txt` of the package `shakespeare` 0.6. Each becomes
`plays/<play>.txt` beside this module, in one layout for all: paragraphs divided by one empty line,
a speaker's name alone on its line in capitals with a colon, a stage direction in square brackets,
`ACT II` and `SCENE III. A street.` on lines of their own, no indentation.
"""

import argparse
import re
import sys
from pathlib import Path

from resources.corpus import PLAYS_FOLDER

POEMS = frozenset(
    {
        "lovers_complaint",
        "passionate_pilgrim",
        "phoenix_and_the_turtle",
        "rape_of_lucrece",
        "sonnets",
    }
)

# Three of the texts shorten their speakers' names; the others write them out.
SPEAKERS = {
    "hamlet": {
        "Ham": "HAMLET",
        "Hor": "HORATIO",
        "Pol": "POLONIUS",
        "Laer": "LAERTES",
        "Oph": "OPHELIA",
        "Ros": "ROSENCRANTZ",
        "Guil": "GUILDENSTERN",
        "Guild": "GUILDENSTERN",
        "Mar": "MARCELLUS",
        "Osr": "OSRIC",
        "Ber": "BERNARDO",
        "Rey": "REYNALDO",
        "Fran": "FRANCISCO",
        "Capt": "CAPTAIN",
        "I": "FIRST",
        "P": "PLAYER",
        "Play": "PLAYER",
        "Fort": "FORTINBRAS",
        "For": "FORTINBRAS",
        "Gent": "GENTLEMAN",
        "Mess": "MESSENGER",
        "Volt": "VOLTIMAND",
        "Cor": "CORNELIUS",
        "Pro": "PROLOGUE",
        "Luc": "LUCIANUS",
    },
    "lear": {
        "Glou": "GLOSTER",
        "Edg": "EDGAR",
        "Edm": "EDMUND",
        "Reg": "REGAN",
        "Alb": "ALBANY",
        "Gon": "GONERIL",
        "Corn": "CORNWALL",
        "Osw": "OSWALD",
        "Gent": "GENTLEMAN",
        "Cor": "CORDELIA",
        "Mess": "MESSENGER",
        "Phys": "PHYSICIAN",
        "Doct": "PHYSICIAN",
        "Bur": "BURGUNDY",
        "Cur": "CURAN",
        "Serv": "SERVANT",
        "Her": "HERALD",
        "Capt": "CAPTAIN",
        "Off": "OFFICER",
    },
    "romeo_and_juliet": {"Chor": "CHORUS"},
    "henry_iv_part_1": {
        "CAR": "CARRIER",
        "FALS": "FALSTAFF",
        "FAL": "FALSTAFF",
        "GADS": "GADSHILL",
        "GAD": "GADSHILL",
        "BARD": "BARDOLPH",
        "GLEND": "GLENDOWER",
        "HOST": "HOSTESS",
        "HOT": "HOTSPUR",
        "MORT": "MORTIMER",
        "NORTH": "NORTHUMBERLAND",
        "WEST": "WESTMORELAND",
        "WOR": "WORCESTER",
        "DOUG": "DOUGLAS",
        "ARCH": "ARCHBISHOP",
        "CHAM": "CHAMBERLAIN",
        "FRAN": "FRANCIS",
        "SERV": "SERVANT",
        "MESS": "MESSENGER",
        "SHER": "SHERIFF",
        "TRAV": "TRAVELLER",
        "VINT": "VINTNER",
        "OST": "OSTLER",
        "PRINCE": "PRINCE HENRY",
        "LADY": "LADY PERCY",
        "LADY P": "LADY PERCY",
        "SIR M": "SIR MICHAEL",
        "LAN": "LANCASTER",
        "VER": "VERNON",
    },
}
COUNTED = {"1": "FIRST", "2": "SECOND", "3": "THIRD", "4": "FOURTH"}

MISPRINTS = {
    "ANDARUS.": "PANDARUS.",
    "AGAME": "AGAMEMNON.",
    "FIRST FAIRY": "FIRST FAIRY.",
    "APPARITION.--": "APPARITION.",
    "HELCANUS.": "HELICANUS.",
    "HELICANE.": "HELICANUS.",
    "LUCULLIUS.": "LUCULLUS.",
    "PEMBROKE. and BIGOT.": "PEMBROKE and BIGOT.",
    "PERACLES.": "PERICLES.",
    "TITINIUS. MESSALA.": "TITINIUS, MESSALA.",
    "VARRO. CLAUDIUS.": "VARRO, CLAUDIUS.",
    "0 lady": "O lady",
    "1abour": "labour",
    "I'11 ": "I'll ",
    "doth she/ ": "doth she? ",
    "he'11 ": "he'll ",
    "mad/ or": "mad, or",
    "pleaseth you1 my": "pleaseth you, my",
}

MIXED_CASE_NAMES = frozenset({"hamlet", "lear", "romeo_and_juliet"})

ROMAN: tuple[str, ...] = ("0", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")
ROMAN += tuple(f"X{number}" for number in ROMAN[1:10])
ORDINALS = {"FIRST": "I", "SECOND": "II", "THIRD": "III", "FOURTH": "IV", "FIFTH": "V"}

ACT = re.compile(r"ACT (\w+)\.?(?: +(?=SCENE))?", re.IGNORECASE)
SCENE = re.compile(r"SCENE ([IVX]+|\d+)\b[.:,]? *-*", re.IGNORECASE)
PART = re.compile(r"(?:THE )?(PROLOGUE|EPILOGUE|INDUCTION)\.?", re.IGNORECASE)
BEGINNING = re.compile(
    r"^(?:ACT \w+\b.*|(?:THE )?(?:PROLOGUE|INDUCTION)\.?)$", re.IGNORECASE | re.MULTILINE
)
SPEAKER = re.compile(r"([A-Z1-9][\w'&,. -]*?)\s*[.:]?\]?\s*((?:\[[^\]]*\]\s*)*)")
JOINING = frozenset({"and", "of", "the", "to", "with", "within", "or"})


def clean(play: str, text: str) -> str:
    """The play alone, from its first act, prologue or induction on, in the corpus's layout.

    Raises:
        ValueError: nothing in the text looks like the beginning of a play.
    """
    title = text.strip().splitlines()[0].strip()
    beginning = BEGINNING.search(text)
    if beginning is None:
        raise ValueError(f"{play} has neither an act nor a prologue to begin with.")
    blocks = re.split(r"\n\s*\n", text[beginning.start() :].expandtabs())
    paragraphs: list[list[str]] = []
    for block in blocks:
        lines = [_tidy(line) for line in block.splitlines()]
        lines = [line for line in lines if line and line not in {title, "THE END"}]
        short_title = title.split(" OF ")[-1]
        if lines and not (len(lines) == 1 and lines[0] in {short_title, f"THE {short_title}"}):
            paragraphs += _split_headings(lines)
    spoken = _known_speakers(play, paragraphs)
    shaped = [_shape(play, lines, spoken) for lines in paragraphs]
    return _join(shaped)


def _tidy(line: str) -> str:
    if line.strip(" @") == "" or line.strip(" .") in ROMAN:  # a song's verses are numbered
        return ""
    if re.fullmatch(r" *\[?SONG\.?\]? *", line):
        return "[Song.]"
    for wrong, right in MISPRINTS.items():
        if wrong in line and (not wrong.isupper() or line.strip() == wrong):
            line = line.replace(wrong, right)
    line = line.replace("{", "[").replace("}", "]").replace("_", "").replace("<", "").strip()
    line = re.sub(r" {2,}", " ", line)
    return re.sub(r" +([,;:.?!])", r"\1", line)


def _split_headings(lines: list[str]) -> list[list[str]]:
    """Each heading as a paragraph of its own, with the place a scene names on its line."""
    rest = list(lines)
    headings: list[list[str]] = []
    while rest:
        line = rest[0]
        if (act := ACT.match(line)) and (act.end() == len(line) or "SCENE" in line):
            number = act[1].upper()
            roman = ORDINALS.get(number) or (ROMAN[int(number)] if number.isdigit() else number)
            headings.append([f"ACT {roman}"])
            rest[:1] = [line[act.end() :]] if line[act.end() :] else []
        elif scene := SCENE.match(line):
            place = [line[scene.end() :].strip()]
            rest.pop(0)
            while rest and not rest[0].startswith("["):
                place.append(rest.pop(0))
            number = scene[1].upper()
            roman = ROMAN[int(number)] if number.isdigit() else number
            where = " ".join(place).strip().rstrip("].").strip()
            headings.append([f"SCENE {roman}. {where}." if where else f"SCENE {roman}."])
        elif len(lines) == 1 and (part := PART.fullmatch(line)):
            headings.append([part[1].upper()])
            rest.pop(0)
        else:
            break
    return [*headings, rest] if rest else headings


def _is_heading(line: str) -> bool:
    return bool(re.fullmatch(r"ACT [IVX]+|SCENE [IVX]+\..*|PROLOGUE|EPILOGUE|INDUCTION", line))


def _speaker(play: str, line: str) -> tuple[str, str] | None:
    """A speaker's full name in capitals and the direction after it, if `line` is just that."""
    match = SPEAKER.fullmatch(line)
    if match is None or _is_heading(line):
        return None
    name, direction = match[1].strip(), match[2].strip()
    longer = COUNTED | SPEAKERS.get(play, {})
    name = re.sub(r"&C?", lambda m: "others" if len(m[0]) > 1 else "and", name, flags=re.IGNORECASE)
    whole = longer.get(name.strip("."))
    words = [whole] if whole else [_longer(word, longer) for word in name.split()]
    in_capitals = all(
        word.isupper() or word in JOINING or word == "others" or sum(map(str.isupper, word)) > 2
        for word in words
    )
    if not in_capitals and play not in MIXED_CASE_NAMES:
        return None
    return " ".join(words).upper(), direction


def _longer(word: str, longer: dict[str, str]) -> str:
    plain = word.strip(".,")
    return longer[plain] + "," * word.endswith(",") if plain in longer else word


def _known_speakers(play: str, paragraphs: list[list[str]]) -> frozenset[str]:
    """The names that stand alone above at least one speech."""
    names = set()
    for lines in paragraphs:
        found = _speaker(play, lines[0])
        stopped = re.search(r"\.\]?(?: ?\[.*)?$", lines[0]) or len(lines) > 1
        if found and stopped and len(lines[0]) < 50 and found[0] not in ROMAN:
            is_mixed = play in MIXED_CASE_NAMES
            if not is_mixed or (len(found[0].split()) <= 5 and _is_a_name(lines[0])):
                names.add(found[0])
    return frozenset(names)


def _is_a_name(line: str) -> bool:
    """Whether a line in small letters is a name: every word capitalised, and short."""
    words = re.sub(r"\[.*", "", line).replace(",", " ").split()
    return all(w[0].isupper() or w[0].isdigit() or w in JOINING for w in words) and (
        len(words) == 1 or words[0].strip(".") not in {"So", "Give", "Go", "Come", "Sirrah"}
    )


def _shape(play: str, lines: list[str], spoken: frozenset[str]) -> list[str]:
    """One paragraph's lines with its speaker, if it has one, set apart and directions whole."""
    if _is_heading(lines[0]):
        return lines
    head: list[str] = []
    found = _speaker(play, lines[0])
    if found and found[0] in spoken and not lines[0].startswith("["):
        head = [f"{found[0]}:"]
        lines = ([found[1]] if found[1] else []) + lines[1:]
    elif (run_in := re.match(r"([A-Z][A-Z ]+[A-Z])\. (?=\S)(.*)", lines[0])) and run_in[
        1
    ] in spoken:
        head = [f"{run_in[1]}:"]
        lines = [run_in[2], *lines[1:]]
    return head + _balance(lines)


def _balance(lines: list[str]) -> list[str]:
    """The lines with every stage direction opened and closed once, and never broken."""
    if not lines:
        return lines
    if re.match(r"(?:Enter|Exit|Exeunt|Re-enter|Dead March)\b", lines[0]) and "[" not in lines[0]:
        return ["[" + " ".join(lines).rstrip("]") + "]"]
    text = "\n".join(lines)
    inner = re.sub(r"[\[\]]", "", text)
    opens, closes = text.count("["), text.count("]")
    whole = text.startswith("[") and (text.endswith("]") or opens > closes) and "\n[" not in text
    nested = opens != closes or re.search(r"\[[^\]]*\[", text)
    if nested and (whole or re.fullmatch(r"(?:Enter|Exeunt)[^\[]*\]", text)):
        return [f"[{inner.replace(chr(10), ' ')}]"]
    pieces: list[str] = []
    for line in re.sub(r"\[[^\]]*\]", lambda m: m[0].replace("\n", " "), text).splitlines():
        missing = line.count("[") - line.count("]")
        closed = line + "]" * missing if missing > 0 else "[" * -missing + line
        pieces.append(re.sub(r"^(\[[^\]]*\w)\]$", r"\1.]", closed))
    return pieces


def _join(paragraphs: list[list[str]]) -> str:
    """The paragraphs divided by empty lines; a name parted from its speech is put back to it."""
    parts: list[str] = []
    for lines in paragraphs:
        joins = parts and parts[-1].endswith(":") and "\n" not in parts[-1]
        if joins and parts[-1].isupper() and not _is_heading(lines[0]):
            parts[-1] += "\n" + "\n".join(lines)
        else:
            parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Write every play found in the folder given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the files <play>_gut.txt are")
    folder = parser.parse_args().folder
    sources = sorted(folder.glob("*_gut.txt"))
    if not sources:
        sys.exit(f"{folder} holds no file named like hamlet_gut.txt.")
    PLAYS_FOLDER.mkdir(exist_ok=True)
    for source in sources:
        play = source.name.removesuffix("_gut.txt").removeprefix("tragedy_of_")
        if play not in POEMS:
            text = clean(play, source.read_text(encoding="ascii"))
            (PLAYS_FOLDER / f"{play}.txt").write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()

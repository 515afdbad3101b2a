"""Images as a few bytes: learned codes beside JPEG."""

from pathlib import Path
from typing import Any

from regard.plots import figure as picture
from regard.studies.compression.jpeg import Rate, plot_rates, psnr_at

from .parts import Runs, making, table


def write(value: dict[str, Any], folder: Path) -> str:
    """Write the page on compression and draw its pictures."""
    runs: Runs = value["runs"]
    parts = [
        "# Images as a few bytes",
        "",
        "Each cell of an image has a code of whole numbers. A range coder writes them with the "
        "frequencies of the training codes, which belong to the model, as tables belong to other "
        "formats. Bits a pixel are those of the whole file, its head of 25 bytes included; a "
        "pixel is one place of an image, whatever its channels. In equal parts: what the same "
        "codes would take if every number were equally likely. PSNR is the mean over images.",
        "",
        "JPEG (Pillow) has all images joined in one sheet, so that its head, which is counted, is "
        "shared, and the better of all that it offers at each size: images at whole blocks or "
        "without gaps, colours in full or at half the size, Huffman tables fitted to the sheet, "
        "qualities 1 to 95. It was made for photos of another size than these, and knows nothing "
        "of what is on them; a learned code knows nothing else.",
        "",
    ]
    for rival in value["together"]:
        own = [run for run in runs if run["form"] == rival["form"]]
        parts += _form(rival, own, folder) if own else []
    return "\n".join([*parts, making(value), ""])


def _form(rival: dict[str, Any], runs: Runs, folder: Path) -> list[str]:
    rates = [
        Rate(one["bits_per_pixel"], one["psnr"], one["bytes"], one["setting"])
        for one in rival["rates"]
    ]
    file = f"compression-{rival['form']}.svg"
    points = [(run["bits_per_pixel"], run["psnr"]["value"]) for run in runs]
    picture.save(folder / file, plot_rates(rates, {"learned codes": points}))
    rows = []
    for run in runs:
        other = psnr_at(rates, run["bits_per_pixel"])
        low, high = run["psnr"]["interval"]
        rows.append(
            (
                run["code"],
                f"{run['bytes']:,}",
                f"{run['bits_per_pixel']:.3f}",
                f"{run['plain_bits_per_pixel']:.3f}",
                f"{run['psnr']['value']:.2f} ± {(high - low) / 2:.2f}",
                "no file so small" if other is None else f"{other:.2f}",
            )
        )
    head = ("numbers", "bytes", "bits a pixel", "in equal parts", "PSNR", "JPEG at equal size")
    least = rates[0]
    return [
        f"## `{rival['data']}`, {rival['form'].replace('x', ' x ')}, {runs[0]['images']:,} images",
        "",
        f"![PSNR over bits a pixel]({file})",
        "",
        table(head, rows),
        "",
        f"The smallest sheet of JPEG has {least.num_bytes:,} bytes ({least.bits_per_pixel:.3f} "
        f"bits a pixel, {least.psnr:.2f} dB; {least.setting}).",
        "",
    ]

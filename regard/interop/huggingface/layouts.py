"""The layouts we know, by what `config.json` calls them."""

from regard.interop.huggingface.bert import BertLayout
from regard.interop.huggingface.distilbert import DistilBertLayout
from regard.interop.huggingface.layout import Layout
from regard.interop.huggingface.marian import MarianLayout
from regard.interop.huggingface.roberta import RobertaLayout
from regard.interop.huggingface.vit import VitLayout

LAYOUTS: dict[str, Layout] = {
    layout.model_type: layout
    for layout in (BertLayout(), RobertaLayout(), DistilBertLayout(), MarianLayout(), VitLayout())
}

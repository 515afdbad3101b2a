"""The layouts we know, by what `config.json` calls them."""

from regard.exchange.bert import BertLayout
from regard.exchange.distilbert import DistilBertLayout
from regard.exchange.layout import Layout
from regard.exchange.marian import MarianLayout
from regard.exchange.roberta import RobertaLayout
from regard.exchange.vit import VitLayout

LAYOUTS: dict[str, Layout] = {
    layout.model_type: layout
    for layout in (BertLayout(), RobertaLayout(), DistilBertLayout(), MarianLayout(), VitLayout())
}
